"""One file format per module: bytes ⇄ values, no I/O. Importing one drags in none of the others."""
