"""All checks of a learner, in order."""

from kubebeast_conformance.learner import bad_hellos, bad_messages, dialing, ends, limits, playing, under_attack

CHECKS = (
    *playing.CHECKS,
    *bad_hellos.CHECKS,
    *bad_messages.CHECKS,
    *limits.CHECKS,
    *under_attack.CHECKS,
    *ends.CHECKS,
)
DIALING_CHECKS = dialing.CHECKS
"""Checks of a learner that dials, limited to the differences."""
