"""The alert rules as code."""
