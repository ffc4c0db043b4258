"""Reading the cluster metadata for a use case."""
