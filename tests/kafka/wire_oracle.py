"""What a stock release says about bytes of the protocol: its schemas, out of its jars, and its classes, in a JVM.

Not here: brokers (``rig.py``).
"""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from logdir.wire.schema import Field
from tests.kafka.jvm import java_command

_SOURCE = Path(__file__).with_name("WireOracle.java")


class Schemas:
    """The schema files in the jars of a release."""

    def __init__(self, libs: Path, version: str) -> None:
        self._found: dict[str, dict[str, Any]] = {}
        for jar in (f"kafka-clients-{version}.jar", f"kafka-metadata-{version}.jar"):
            with zipfile.ZipFile(libs / jar) as packed:
                for name in packed.namelist():
                    if re.fullmatch(r"common/(message|metadata)/\w+\.json", name):
                        text = re.sub(r"(?m)^\s*//.*$", "", packed.read(name).decode())
                        self._found[Path(name).stem] = json.loads(text)

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def names(self, kind: str) -> set[str]:
        """Return the names of a type: request, response, metadata, data."""
        return {name for name, schema in self._found.items() if schema["type"] == kind}

    def key(self, name: str) -> int:
        """Return the number of an API or record."""
        key: int = self._found[name]["apiKey"]
        return key

    def versions(self, name: str) -> range:
        """Return the versions a release reads; none if it has left the message behind."""
        return _range(self._found[name]["validVersions"], 0x7FFF)

    def flexible(self, name: str) -> range:
        """Return the flexible versions."""
        return _range(self._found[name]["flexibleVersions"], 0x7FFF)

    def flat(self, name: str, version: int) -> list[str]:
        """Return a line a field of a version, as :func:`flat` does of our tables."""
        schema = self._found[name]
        structs = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", ())}
        return list(_flat(schema["fields"], structs, version, ""))


def _range(text: str, end: int) -> range:
    if text == "none":
        return range(0)
    low, _, high = text.replace("+", f"-{end}").partition("-")
    return range(int(low), int(high or low) + 1)


def _flat(fields: Sequence[dict[str, Any]], structs: dict[str, Any], version: int, above: str) -> Iterator[str]:
    for field in fields:
        if version not in _range(field["versions"], 0x7FFF):
            continue
        is_array = field["type"].startswith("[]")
        base = field["type"].removeprefix("[]")
        members = field.get("fields") or structs.get(base)
        name = above + field["name"][0].lower() + field["name"][1:]
        tag = field.get("tag") if version in _range(field.get("taggedVersions", "none"), 0x7FFF) else None
        yield _line(
            name,
            ("[]" if is_array else "") + ("{}" if members else {"records": "bytes"}.get(base, base)),
            version in _range(field.get("nullableVersions", "none"), 0x7FFF),
            tag,
            None if members and not is_array else _default(base, is_array, field.get("default")),
        )
        if members:
            yield from _flat(members, structs, version, f"{name}.")


def _default(base: str, is_array: bool, given: object) -> object:
    if given == "null":
        return None
    if is_array:
        return ()
    text = "" if given is None else str(given)
    if base == "string":
        return text
    if base in ("bytes", "records"):
        return b""
    if base == "uuid":
        return bytes(16)
    if base == "bool":
        return text.lower() == "true"
    return float(text or 0) if base == "float64" else int(text or "0", 0)


def _line(name: str, kind: str, nullable: bool, tag: int | None, default: object) -> str:
    return f"{name} {kind} null={nullable} tag={tag} default={default!r}"


def flat(fields: Iterable[Field], version: int, above: str = "") -> list[str]:
    """Return a line for each field of a version of one of our tables."""
    lines = []
    for field in fields:
        if version in field.versions:
            kind = ("[]" if field.is_array else "") + field.type
            lines.append(_line(above + field.name, kind, version in field.nullable, field.tag, field.default))
            lines += flat(field.fields, version, f"{above}{field.name}.")
    return lines


@dataclass(frozen=True)
class Answer:
    """What the classes said to one question."""

    error: str
    """Empty if they read it."""
    words: tuple[str, ...]


def ask(questions: Iterable[Sequence[str]], *, libs: Path, root: Path, version: str) -> list[Answer]:
    """Ask the classes of a release. Blocks until all is answered.

    Args:
        questions: Words each, as ``WireOracle.java`` lists them.
        libs: The release's jars.
        root: A temporary root of the rig.
        version: Of the release.
    """
    text = _SOURCE.read_text()
    if int(version.split(".")[0]) >= 4:
        text = text.replace("org.apache.kafka.common.record.", "org.apache.kafka.common.record.internal.")
    source = root / f"oracle-{version}" / _SOURCE.name
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(text)
    asked = ["\t".join(words) for words in questions]
    command = [*java_command(libs=libs, root=root, heap_mib=256, level="OFF"), str(source)]
    done = subprocess.run(command, input="\n".join(asked) + "\n", capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    answers = []
    for line in done.stdout.splitlines():
        state, *words = line.split("\t")
        answers.append(Answer(words[0] if state == "error" else "", tuple(words)))
    assert len(answers) == len(asked)
    return answers
