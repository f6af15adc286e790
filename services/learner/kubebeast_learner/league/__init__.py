"""Self-play: earlier versions of the policy as opponents."""
