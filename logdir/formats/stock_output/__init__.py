"""Output of Kafka's own tools (``kafka-log-dirs``, ``kafka-topics``): values to text, line by line."""
