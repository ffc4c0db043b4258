"""The disks and inventories of a fleet, read into Spark."""
