"""The calls that look at and change a disk, and what the kernel says about them."""
