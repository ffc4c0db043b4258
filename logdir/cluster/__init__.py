"""What the cluster says should be there: images, and the sources they come from."""
