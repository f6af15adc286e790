"""Curricula: the choice of the level of each episode, which is the options of its reset."""
