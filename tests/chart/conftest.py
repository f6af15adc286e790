"""The dashboard and the alert rules are no distribution: tests import them from where they lie."""

import sys

from tests.chart.chart import CHART

sys.path.append(str(CHART.parent))
