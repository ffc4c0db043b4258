"""What the cluster says, read for a use case."""
