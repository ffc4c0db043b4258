"""The storage layer: names, file formats, disk operations and their use cases.

Spec: design §5.
"""
