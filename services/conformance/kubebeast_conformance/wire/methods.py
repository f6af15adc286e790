"""gRPC methods of the contract."""

ACT = "/kubebeast.v1.ActorPool/Act"
"""Method that an env-server calls if it dials."""
PLAY = "/kubebeast.v1.EnvServer/Play"
"""Method that a learner calls if it dials."""
