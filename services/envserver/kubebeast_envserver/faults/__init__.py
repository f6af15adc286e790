"""Environments that raise, hang or return what they must not."""
