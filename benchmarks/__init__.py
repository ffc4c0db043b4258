"""Measurements against named baselines taken in the same run; never tests.

Spec: design §10, `spec/baselines.md` for what these cost on a known machine.
"""
