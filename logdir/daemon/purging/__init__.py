"""Purges that the daemon makes by itself: when they are due, what stops them, and what they could not remove."""
