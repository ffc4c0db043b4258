"""The control socket: its server in the daemon, its client, and the way from a configuration to the socket."""
