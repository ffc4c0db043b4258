"""What is asked of a process in a container: whether a file is in use, to hold it open, to link it.

Started as ``inside.py in-use|hold|link DIRECTORY NAME [TO]``. ``hold`` says *held* and keeps the file open until its
standard input ends; the others print what they found.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from logdir.disk.kernel.host import HostDisk
from logdir.disk.kernel.in_use import in_use, prove_lease


def main() -> None:
    """Do what was asked."""
    verb, directory, name, *to = sys.argv[1:]
    path = Path(directory, name)
    match verb:
        case "hold":
            with path.open("r+b"):
                print("held", flush=True)
                sys.stdin.read()
        case "link":
            os.link(path, to[0])
            print(path.stat().st_nlink)
        case "in-use":
            with HostDisk().open_top(directory) as top:
                prove_lease(top, name)
                print(in_use(top, name))
        case _:
            raise SystemExit(f"no such word: {verb}")


if __name__ == "__main__":
    main()
