"""Our small files in a work root or log dir, and Kafka's checkpoint files: reading them, and writing them durably."""
