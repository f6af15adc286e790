"""Adds the folder of the dashboard and the alert rules, which are no distribution, to the import path."""

import sys

from tests.chart.chart import CHART

sys.path.append(str(CHART.parent))
