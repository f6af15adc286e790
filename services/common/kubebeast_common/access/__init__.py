"""Access control: addresses, certificates and tokens."""
