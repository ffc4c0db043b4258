"""What lies on a disk, read-only and with the standard library alone."""
