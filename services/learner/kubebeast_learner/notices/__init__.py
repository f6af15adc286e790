"""Notices of clouds that the node of a learner is about to go."""
