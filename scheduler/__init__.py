"""When things are done: deadlines, clocks and wake-ups. Never works on a disk itself.

The schedule is the disk: deadlines are read from what is staged, and losing this package's memory loses nothing.

Spec: design §3.3, style §4.2.
"""
