"""Watching runs: metrics, tables, curves and reports."""
