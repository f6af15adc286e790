"""Trackers of services: Weights & Biases, MLflow and Trackio, each in a process of its own."""

NAMES = ("wandb", "mlflow", "trackio")
"""Services by the names of their Python packages, and of the extras with these."""
