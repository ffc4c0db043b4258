"""Changes of many replicas, in batches."""
