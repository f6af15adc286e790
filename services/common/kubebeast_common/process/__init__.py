"""What a process asks of its system, and how it ends."""
