"""Who may come in: addresses, certificates and tokens."""
