"""Protection from environments that raise, hang or return invalid values."""
