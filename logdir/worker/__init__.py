"""Ports of log dirs: the calls of one log dir, made in this process or in a worker process with a deadline."""
