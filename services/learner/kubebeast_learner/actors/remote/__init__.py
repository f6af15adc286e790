"""Actors behind the native pool: env-servers on this machine or anywhere."""
