"""A trained model plays: evaluation, rendering, export."""
