"""Rules for images: whether one may be applied here, and what it means for one replica."""
