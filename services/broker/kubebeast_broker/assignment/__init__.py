"""The division of streams among learners, without I/O."""
