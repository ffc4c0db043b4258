"""The only ring that changes a disk: all operations on log dirs, the locks they need, and crash recovery."""
