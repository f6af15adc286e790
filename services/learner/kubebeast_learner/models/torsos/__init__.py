"""Torsos, which map the leaves of an observation to features. The torso of a single leaf is its encoder."""
