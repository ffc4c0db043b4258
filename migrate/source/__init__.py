"""Reading the disks and inventories of a fleet into Spark."""
