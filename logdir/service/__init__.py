"""The use cases over all log dirs of one broker: what the command line and the daemon both call."""
