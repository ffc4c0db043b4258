"""The migration plan of a fleet: the findings on its disks, and the plan directory made from them."""
