"""File formats, one per module: bytes ⇄ values, no I/O. Importing one does not import all the others."""
