"""What an image is worth here: whether it may be followed, and what it says of one replica."""
