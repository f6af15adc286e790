"""Everything that is asked of a learner, in order."""

from kubebeast_conformance.learner import bad_hellos, bad_messages, dialling, ends, limits, playing

CHECKS = (*playing.CHECKS, *bad_hellos.CHECKS, *bad_messages.CHECKS, *limits.CHECKS, *ends.CHECKS)
DIALLING_CHECKS = dialling.CHECKS
"""Of one that dials: what differs there."""
