"""Prometheus metrics of a learner.

native pool, training --values--> tables (actors, training, machine) --collector--> registry --scrape--> Prometheus
"""

from kubebeast_learner.metrics.actors import ACTORS
from kubebeast_learner.metrics.machine import MACHINE
from kubebeast_learner.metrics.registry import make_registry as make_registry
from kubebeast_learner.metrics.training import TRAINING

ROWS = (*ACTORS, *TRAINING, *MACHINE)
