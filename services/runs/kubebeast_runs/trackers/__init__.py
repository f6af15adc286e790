"""Trackers: where the numbers of a run go while it trains."""
