"""Environments of gymnasium, of Atari and of this package, and the choice among them."""
