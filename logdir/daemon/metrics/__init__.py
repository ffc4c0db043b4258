"""The metrics of the daemon, in the text format of Prometheus."""
