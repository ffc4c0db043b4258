"""The log dirs of one broker: named, opened, locked, looked at."""
