"""What a release costs, by the prices that the reader types in."""

from dashboard.promql import of_release

NEEDS_POD_MONITOR = "env-servers are not scraped"
"""Instead of a cost: a fleet that nobody reads is not free."""
DOLLARS_AN_HOUR = (
    f"($env_server_price * {of_release('kubebeast_envserver_streams{%s}', aggregate='count')}"
    f" + $learner_price * {of_release('kubebeast_streams{%s}', aggregate='count')})"
)
