"""Processes of a sweep: its runs, and a broker."""
