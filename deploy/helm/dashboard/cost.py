"""The cost of a release, by prices that the reader enters, and the steps that it gets for them."""

from dashboard.promql import of_release, rate, total

NEEDS_POD_MONITOR = "env-servers are not scraped"
"""Shown instead of a cost: a fleet that is not scraped is not free."""
DOLLARS_AN_HOUR = (
    f"($env_server_price * {of_release('kubebeast_envserver_streams{%s}', aggregate='count')}"
    f" + $learner_price * {of_release('kubebeast_streams{%s}', aggregate='count')})"
)
DELIVERED = total(rate("kubebeast_steps_total", 'outcome="delivered"'))
"""Steps per second that the learner received."""
