"""Version 1 of the contract: actor_pool.proto is its text, the generated modules beside it are its Python."""

PROTOCOL_VERSION = 1
"""Major version that a peer sends in Hello and Welcome."""

PROTOCOL_MINOR = 8
"""Minor version: which additions of the contract this side knows."""

WAITING_MINOR = 8
"""From this minor version on a learner takes rows of agents that wait for the turns of others."""

OPTIONS_MINOR = 7
"""From this minor version on an env-server takes options of episodes."""

INFO_MINOR = 6
"""From this minor version on a learner takes Episode.info and Episode.exact_return."""

ABSENT_MINOR = 4
"""From this minor version on a learner takes rows of agents that are absent."""
