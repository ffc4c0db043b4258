r"""Text of unit files: words as systemd reads them back, and the seal by which a file of ours is known.

Not here: which settings there are (``drop_ins``), the files (``drop_in_files``).

Spec: systemd.syntax(7), systemd.unit(5) "Specifiers", systemd.service(5) "Command lines".
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z0-9_@+=:,./%$-]+")
_SEAL: Final = "# sha256 of the lines below: "
_HEAD: Final = """\
# Written by logdirctl init --systemd, which writes it again when the configuration has changed. Once somebody else has
# changed it, it is left alone: settings of yours belong into another file beside it, as 90-local.conf.
"""


def word(text: str) -> str:
    r"""Return one word of a setting that takes several.

    >>> print(word("/data/d1"), word('/d "1"'), word("/50%"))
    /data/d1 "/d \"1\"" /50%%
    """
    doubled = text.replace("%", "%%")
    if _PLAIN.fullmatch(doubled):
        return doubled
    return '"' + doubled.replace("\\", "\\\\").replace('"', '\\"') + '"'


def argument(text: str) -> str:
    r"""Return one argument of a command line, in which ``$`` is special, too.

    >>> argument("/opt/$x/logdirctl")
    '/opt/$$x/logdirctl'
    """
    return word(text.replace("$", "$$"))


def is_writable(text: str) -> bool:
    r"""Return whether a text can stand in a unit file, which has lines of UTF-8.

    >>> is_writable("/d 1"), is_writable("/d\n1"), is_writable("/d\udcff")
    (True, False, False)
    """
    return text.isprintable()


def sealed(body: str) -> str:
    """Return the text of a file with a head that says who wrote it, and a digest by which a change is noticed."""
    return f"{_HEAD}{_SEAL}{_digest(body)}\n{body}"


def is_sealed(text: str) -> bool:
    """Return whether a text is as ``sealed`` returned it, of this release or another one.

    >>> is_sealed(sealed("[Unit]")), is_sealed(sealed("[Unit]") + "# mine"), is_sealed("[Unit]")
    (True, False, False)
    """
    _, found, rest = text.partition(f"\n{_SEAL}")
    digest, _, body = rest.partition("\n")
    return bool(found) and digest == _digest(body)


def _digest(body: str) -> str:
    return sha256(body.encode()).hexdigest()
