"""The description of an environment: its leaves, its shapes and how it is made."""
