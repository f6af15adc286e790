"""A run as files: its log, its scores, its lock and its folder, to write and to read without PyTorch."""
