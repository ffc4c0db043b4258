"""Kafka's binary formats: record batches, metadata records, protocol messages. Bytes ⇄ values, no I/O."""
