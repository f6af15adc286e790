"""Learners, ranks, env-servers and trainers in separate processes, which can be killed and restarted."""
