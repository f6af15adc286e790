"""Checks of an env-server; the suite plays the learner."""
