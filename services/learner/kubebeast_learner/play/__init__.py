"""A trained model plays: evaluation, rendering, export. An environment is tried before there is one."""
