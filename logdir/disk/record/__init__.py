"""Our small files in a work root or log dir, and Kafka's checkpoints: read, and made durable."""
