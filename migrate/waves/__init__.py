"""Which brokers may stop together."""
