"""Environments: gymnasium's, Atari's, the built-in ones, and the choice among them."""
