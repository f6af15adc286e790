"""All checks of an env-server, in order."""

from kubebeast_conformance.env_server import bad_actions, ends, handshake, patience, playing

CHECKS = (*handshake.CHECKS, *playing.CHECKS, *bad_actions.CHECKS, *ends.CHECKS, *patience.CHECKS)
