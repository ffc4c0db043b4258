"""Changes of many replicas, batch by batch."""
