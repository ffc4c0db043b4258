"""The report of a plan: one HTML page."""
