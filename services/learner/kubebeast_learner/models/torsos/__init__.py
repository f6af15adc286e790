"""Torsos: from the leaves of an observation to features. One that takes a single leaf is its encoder."""
