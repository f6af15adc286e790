"""Processes of `kubebeast train`, `learner`, `mono` and `tune`."""
