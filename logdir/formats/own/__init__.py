"""Formats of our own files: bytes ⇄ values, no I/O."""
