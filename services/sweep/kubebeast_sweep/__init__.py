"""Searches for settings of a training: runs beside each other, compared by their returns."""
