"""Results of a sweep: files, tables on a terminal, and a picture."""
