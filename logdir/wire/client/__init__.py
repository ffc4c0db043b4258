"""A small read-only client of Kafka's protocol: what brokers say of topics, logs, disks and the metadata quorum."""
