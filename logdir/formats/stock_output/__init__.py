"""Output formats of stock tools, line by line."""
