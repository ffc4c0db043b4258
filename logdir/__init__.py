"""The storage layer: names, formats and what is seen on a disk.

Spec: design §5.
"""
