"""What a process sets in the C library, by its effect."""

from __future__ import annotations

import subprocess
import sys

_CODE = """
import sys
from logdir.disk.kernel.kernel_process import give_back_memory
if sys.argv[1] == "set":
    give_back_memory()

def resident():
    return int(next(line for line in open("/proc/self/smaps_rollup") if line.startswith("Rss")).split()[1])

large = bytes(30 << 20)
del large
blocks = [bytes(100_000) for _ in range(300)]
full = resident()
del blocks
print(full - resident())
"""


def test_memory_that_was_freed_is_given_back() -> None:
    kept, given = (
        int(subprocess.run([sys.executable, "-c", _CODE, how], capture_output=True, check=True, text=True).stdout)
        for how in ("unset", "set")
    )
    # Kilobytes of thirty megabytes.
    assert (kept < 1000, given > 5000) == (True, True), (kept, given)
