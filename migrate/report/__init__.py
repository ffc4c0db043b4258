"""The report of a plan as one HTML page: its model, its sections and its drawings."""
