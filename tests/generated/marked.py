"""Writing what is generated: whole files, or a part of a page that people write, between two comments that name it.

Not here: what is generated (the modules beside this one).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path


def write_all(files: Mapping[Path, Callable[[], str]]) -> str:
    """Write files, each as its function renders it; return their names."""
    for path, render in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(), encoding="utf-8")
    return ", ".join(path.name for path in files)


def replaced(page: str, name: str, text: str) -> str:
    """Return a page with another generated part.

    Args:
        page: The page, with the comments ``<!-- generated: NAME … -->`` and ``<!-- end of NAME -->`` in lines of their
            own, once each.
        name: Of the part.
        text: The part, without the comments.

    Raises:
        ValueError: the page has no such part, or several.
    """
    part = re.compile(
        rf"(^<!-- generated: {re.escape(name)}\b[^\n]*-->\n).*?(^<!-- end of {re.escape(name)} -->$)", re.M | re.S
    )
    if len(part.findall(page)) != 1:
        raise ValueError(f"expected one generated part {name}, found {len(part.findall(page))}")
    return part.sub(lambda found: f"{found[1]}{text.rstrip()}\n{found[2]}", page)
