"""The calls of the contract."""

ACT = "/kubebeast.v1.ActorPool/Act"
"""Of an env-server that dials."""
PLAY = "/kubebeast.v1.EnvServer/Play"
"""Of a learner that dials."""
