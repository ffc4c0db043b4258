"""System calls that read and change a disk, and the meaning of their errors."""
