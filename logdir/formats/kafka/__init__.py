"""Formats of Kafka's files: bytes ⇄ values, no I/O."""
