"""Scales of observations, which training data determine and which are part of the weights."""
