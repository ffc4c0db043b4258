"""The plan, and the findings it is based on."""
