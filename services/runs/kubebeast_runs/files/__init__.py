"""Growing files of a run, and the handling of writes that fail."""
