"""The processes of an env-server: one for each stream, and the one that watches over them."""
