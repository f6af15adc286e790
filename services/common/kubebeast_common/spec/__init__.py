"""The description of an environment: its leaves, how it is made, and the limits of both."""
