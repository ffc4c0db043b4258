"""Kafka's bytes on the wire and in the metadata log: batches, metadata records, messages. Bytes ⇄ values, no I/O."""
