"""Our own files: bytes ⇄ values, no I/O."""
