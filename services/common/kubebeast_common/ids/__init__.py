"""Environment ids."""
