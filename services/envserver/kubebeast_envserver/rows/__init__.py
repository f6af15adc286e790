"""What a stream is made of: the rows of its environments, their spaces, and what is known about it."""
