"""One connection to a learner: dialled or accepted, opened, kept in lock-step, ended."""
