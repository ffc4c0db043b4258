"""Decisions about staged replicas: restore, purge, hold, list."""
