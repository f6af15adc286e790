"""Prometheus metrics of a learner.

native pool, training --values--> tables (actors, training, machine) --collector--> registry --scrape--> Prometheus
"""

from kubebeast_learner.observe.metrics.actors import ACTORS
from kubebeast_learner.observe.metrics.machine import MACHINE
from kubebeast_learner.observe.metrics.registry import make_registry as make_registry
from kubebeast_learner.observe.metrics.training import TRAINING

ROWS = (*ACTORS, *TRAINING, *MACHINE)
