"""Learners, ranks, env-servers and trainers in processes of their own, which can be killed and started again."""
