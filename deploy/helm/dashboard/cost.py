"""What a release costs, by the prices that the reader types in, and what it gets for them."""

from dashboard.promql import of_release, rate, total

NEEDS_POD_MONITOR = "env-servers are not scraped"
"""Instead of a cost: a fleet that nobody reads is not free."""
DOLLARS_AN_HOUR = (
    f"($env_server_price * {of_release('kubebeast_envserver_streams{%s}', aggregate='count')}"
    f" + $learner_price * {of_release('kubebeast_streams{%s}', aggregate='count')})"
)
DELIVERED = total(rate("kubebeast_steps_total", 'outcome="delivered"'))
"""Steps a second that the learner took."""
