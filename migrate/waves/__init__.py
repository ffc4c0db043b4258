"""Waves: sets of brokers that may stop together, planned for each cluster."""
