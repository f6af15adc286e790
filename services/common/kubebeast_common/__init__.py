"""What env-servers and learner have in common: logs, metrics, access, the code of users."""
