"""The metadata log of a node for people to read: its contents as a tree, its records, details of topics."""
