"""Waves: groups of brokers that may stop together."""
