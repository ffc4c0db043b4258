"""The version of this tree; ``pyproject.toml`` reads it here, and ``logdirctl --version`` needs nothing else.

Between two releases it is the next one's with ``.dev0`` (PEP 440): what was built from here is no release.
"""

VERSION = "0.3.0.dev0"
