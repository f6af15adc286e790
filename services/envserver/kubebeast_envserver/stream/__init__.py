"""One connection to a learner: dialed or accepted, opened, kept in lock-step, ended."""
