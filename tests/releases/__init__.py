"""What releases left on disk: trees made by their wheels, which every later release must read."""
