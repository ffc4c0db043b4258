"""The command ``logdirctl``: it parses arguments, runs a use case and prints the result."""
