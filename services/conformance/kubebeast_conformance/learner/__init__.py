"""Checks of a learner; the suite plays a fleet."""
