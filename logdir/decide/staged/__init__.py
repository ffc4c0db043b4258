"""What becomes of staged replicas: restored, purged, kept, listed."""
