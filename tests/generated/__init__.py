"""Pages and documents that are made from the code: ``python -m tests.generated`` writes all of them again.

Each generator is a module with ``write()``; a test compares what lies there with what it makes.
"""
