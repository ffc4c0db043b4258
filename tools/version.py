"""The version of this release; ``pyproject.toml`` reads it here, and ``logdirctl --version`` needs nothing else."""

VERSION = "0.2.0"
