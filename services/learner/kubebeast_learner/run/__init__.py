"""Files and statistics of a run."""
