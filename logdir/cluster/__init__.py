"""Cluster metadata: images of the cluster, and the sources they are read from."""
