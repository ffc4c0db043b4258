"""When the daemon acts: deadlines, the jobs of one node, and the timer that wakes it up.

It never works on a disk: a job only enqueues what the daemon then does.

Spec: style §4.2; libraries §2.
"""
