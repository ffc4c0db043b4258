"""Reading disks: read-only, with the standard library alone."""
