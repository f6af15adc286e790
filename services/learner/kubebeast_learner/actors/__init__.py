"""Sources of rollouts: actors in environments."""
