"""Everything that is asked of a learner, in order."""

from kubebeast_conformance.learner import bad_hellos, bad_messages, limits, playing

CHECKS = (*playing.CHECKS, *bad_hellos.CHECKS, *bad_messages.CHECKS, *limits.CHECKS)
