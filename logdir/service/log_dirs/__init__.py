"""The log dirs of one broker: configuration, opening, locking, scanning."""
