"""Output of `--help`: the descriptions of the settings, and their layout."""
