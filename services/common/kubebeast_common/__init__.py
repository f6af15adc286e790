"""Common code of env-servers and learner: logs, metrics, access control, import of users' code."""
