"""Where rollouts come from: something that acts in environments."""
