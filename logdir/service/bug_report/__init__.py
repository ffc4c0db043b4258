"""A report for those who look into a fault: what lies on the host, without records and secrets."""
