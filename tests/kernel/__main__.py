"""``python -m tests.kernel``: power cuts on real file systems, as root; a line each, and a last line with the sum.

Spec: reliability §4.4 (L2).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.kernel.cuts import Cut, Machine, Violation, shortest
from tests.kernel.images import FILE_SYSTEMS, Images, leave_mounts, missing
from tests.kernel.operations import names
from tests.kernel.schedule import SEED, cuts


def main(arguments: Sequence[str] | None = None) -> int:
    """Cut; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.kernel", description=__doc__.partition("\n")[0])
    parser.add_argument("--cuts", type=int, default=300, help="how many; %(default)s by default")
    parser.add_argument("--seed", type=int, default=SEED, help="of which; %(default)s by default")
    parser.add_argument("--file-system", action="append", choices=FILE_SYSTEMS, help="only on these")
    parser.add_argument("--replay", metavar="CUT", action="append", help="as a violation printed it")
    parser.add_argument("--list", action="store_true", help="print the names of the operations")
    asked = parser.parse_args(arguments)
    if asked.list:
        print("\n".join(names()))
        return 0
    kinds = asked.file_system or FILE_SYSTEMS
    todo = [Cut.parse(text) for text in asked.replay or ()] or list(cuts(asked.cuts, kinds, asked.seed))
    if reason := missing(*{cut.file_system for cut in todo}):
        print(reason, file=sys.stderr)
        return 2
    leave_mounts()
    found = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="logdird-kernel-") as folder:
        images = Images(Path(folder) / "images")
        try:
            machine = Machine(images)
            for cut in todo:
                outcome = machine.cut(cut)
                if outcome.messages:
                    found.append(Violation(cut, outcome.messages, outcome.calls))
                if asked.replay:
                    print(f"{cut.render()}: {'; '.join(outcome.messages) or 'nothing is wrong'}")
        finally:
            images.close()
    if found:
        print(shortest(found))
    print(f"{len(todo)} power cuts, {len(found)} violations, {time.monotonic() - began:.1f} s")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
