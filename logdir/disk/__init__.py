"""The only ring that changes a disk: every effect, the locks around it, and what recovery makes of an interruption."""
