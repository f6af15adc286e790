"""Processes of an env-server: one for each stream, and their supervisor."""
