"""Limits of environments and their messages, the same for check-env, mono, env-servers and learners.

The native core refuses a Hello that exceeds them: native/src/core/tensors/tensor_spec.cc, wire/protocol.h. The
limits that it does not check bound the memory of a model.
"""

MAX_ID_CHARACTERS = 253
"""Length of the ids of environments, env-servers and their instances, in printable ASCII."""
MAX_RUN_BYTES = 253
"""Length of a run's name in UTF-8."""
MAX_ENV_CONFIG_CHARACTERS = 8192
"""Length of the configuration of an environment in printable ASCII."""
MAX_LEAVES = 256
"""Number of leaves of an observation, and of an action."""
MAX_PATH_BYTES = 255
"""Length of a leaf's path in UTF-8: the keys of its structure joined with dots."""
MAX_DIMS = 32
"""Number of dimensions of a leaf."""
MAX_FRAME_STACK = 256
"""Number of frames of a stack."""
MAX_LOG_INFO = 32
"""Number of keys of the environments' info that a learner logs."""
MAX_INFO_CHARACTERS = 100
"""Length of such a key in printable ASCII."""
MAX_OPTIONS_CHARACTERS = 4096
"""Length of the options of an episode in printable ASCII."""
MAX_CATEGORIES = 1 << 20
"""Total categories of an observation's leaves, which take a row of weights each, and of an action's choices, which take
a logit each."""
DEFAULT_MESSAGE_MIB = 64
"""Default of max_message_mib, the maximum size of a message from an env-server: the rows of a stream's environments."""
MAX_MESSAGE_BYTES = (1 << 31) - 1
"""Upper bound of max_message_mib, in bytes (https://protobuf.dev/programming-guides/proto-limits/)."""
