"""Use cases over all log dirs of one broker, called by the command line and the daemon."""
