"""``python -m tests.generated``: write all that is made from the code again, to be read before a commit."""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module

import tests.generated as here


def main() -> int:
    for found in pkgutil.iter_modules(here.__path__, f"{here.__name__}."):
        if found.name.endswith("__main__") or found.name.rpartition(".")[2].startswith("test_"):
            continue
        module = import_module(found.name)
        if hasattr(module, "write"):
            print(f"wrote {module.write()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
