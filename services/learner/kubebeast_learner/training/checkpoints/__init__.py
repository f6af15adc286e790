"""Saves of checkpoints during training, beside the updates."""
