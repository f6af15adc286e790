"""What a run leaves on disk, and what is known about it."""
