"""Scheduling of jobs: deadlines and wake-ups. Never changes a disk itself.

The schedule is on the disk: deadlines are read from the staged replicas, so nothing is lost with this process.

Spec: design §3.3, style §4.2.
"""
