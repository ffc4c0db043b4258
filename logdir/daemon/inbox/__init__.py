"""Request documents in the state directory, and what becomes of each."""
