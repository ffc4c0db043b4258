"""What stock tools print, line for line."""
