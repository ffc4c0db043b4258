"""The fleet file: the clusters and brokers of a fleet, and the sources of their disks.

YAML is parsed into values, with all problems reported at once. Scalars follow YAML 1.2: ``010``, ``on`` and
``12:30:00`` are texts here, not numbers or booleans, and a repeated key is refused. Globs are expanded and paths made
absolute, so the values mean the same on any machine with the same files.

Not here: opening the listed sources (``data_source``); a missing path is an unread disk, not an error of this file.

Spec: design §7.2.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import unquote, urlsplit

from logdir.errors import ConfigError, Problem, shown
from logdir.formats.strict_yaml import found_value, load_document
from logdir.observe.named_file import read_regular
from migrate.source.fleet_values import BrokerEntry, Cluster, Fleet, Source, is_uri, min_insync_for

__all__ = [
    "BrokerEntry",
    "Cluster",
    "Fleet",
    "Source",
    "is_uri",
    "min_insync_for",
    "parse_fleet",
    "read_fleet",
]

_T = TypeVar("_T")
_LARGEST = 2**31 - 1
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_MAX_BYTES = 64 * 1024 * 1024
"""Size limit of a fleet file; a larger one is refused before it is parsed."""


class _Reader:
    """Turns the document of a fleet file into values, and collects every problem; with problems no value is used."""

    def __init__(self, file: str, folder: str) -> None:
        self.file = file
        self.folder = folder
        self.problems: list[Problem] = []
        self.listed: dict[str, str] = {}
        """Normalised path → its first place in the file."""

    def problem(self, slug: str, where: str, expected: str, found: str, fix: str = "") -> None:
        place = f"{self.file}: {where}" if where else self.file
        self.problems.append(Problem(f"fleet-{slug}", place, expected, found, fix))

    def mapping(self, value: object, where: str, keys: Mapping[str, bool]) -> dict[str, Any] | None:
        """Return ``value`` if it is a mapping, else ``None``; record unknown keys, and missing required ones."""
        if not isinstance(value, dict):
            self.problem("wrong-type", where, "a mapping", found_value(value))
            return None
        known = ", ".join(keys)
        for key in value:
            if key not in keys:
                self.problem(
                    "unknown-key", where, f"only the keys {known}", found_value(key), "correct or remove that key"
                )
        for key, is_required in keys.items():
            if is_required and key not in value:
                self.problem("missing-key", where, f"the key {key}", "none")
        return value

    def items(self, value: object, where: str, what: str) -> list[Any]:
        if not isinstance(value, list):
            self.problem("wrong-type", where, f"a list of {what}", found_value(value))
            return []
        return value

    def text(self, value: object, where: str, *, empty: bool = False) -> str | None:
        if not isinstance(value, str):
            fix = "put it in quotes" if isinstance(value, (int, float)) else ""
            self.problem("wrong-type", where, "a text", found_value(value), fix)
            return None
        if not value and not empty:
            self.problem("wrong-value", where, "a text that is not empty", "an empty one", "leave it out")
            return None
        return value

    def integer(self, value: object, where: str, least: int) -> int | None:
        if type(value) is not int:  # In Python a bool is an int; here it is not.
            self.problem("wrong-type", where, f"an integer of {least} or more", found_value(value))
            return None
        if not least <= value <= _LARGEST:
            self.problem("wrong-value", where, f"an integer from {least} to {_LARGEST}", found_value(value))
            return None
        return value

    def topics(self, value: object, where: str) -> tuple[tuple[str, int], ...]:
        if not isinstance(value, dict):
            self.problem("wrong-type", where, "a mapping of topic globs", found_value(value))
            return ()
        policy = []
        for pattern, body in value.items():
            here = f"{where}[{shown(str(pattern))}]"
            name = self.text(pattern, here)
            keys = self.mapping(body, here, {"min.insync.replicas": True})
            if keys is not None and "min.insync.replicas" in keys:
                least = self.integer(keys["min.insync.replicas"], f"{here}.min.insync.replicas", 1)
                if name is not None and least is not None:
                    policy.append((name, least))
        return tuple(policy)

    def path(self, value: object, where: str) -> str | None:
        """Return a listed path as written; ``None`` if it is no valid path."""
        text = self.text(value, where)
        if text is None:
            return None
        try:
            ok = "\0" not in text and bool(os.fsencode(text))
        except UnicodeEncodeError:
            ok = False
        if not ok:
            self.problem("wrong-value", where, "a path", found_value(text))
            return None
        return text

    def absolute(self, path: str) -> str:
        whole = os.path.normpath(os.path.join(self.folder, path))
        # POSIX allows a special meaning of exactly two leading slashes; Linux has none.
        return whole[1:] if whole.startswith("//") else whole

    def once(self, path: str, where: str) -> bool:
        """Record the place of a listed path; return whether the path is listed for the first time."""
        return self.listed.setdefault(path, where) == where

    def log_dirs(self, value: object, where: str) -> tuple[str, ...]:
        paths = []
        for index, item in enumerate(self.items(value, where, "paths")):
            here = f"{where}[{index}]"
            text = self.path(item, here)
            if text is None:
                continue
            if is_uri(text):
                self.problem("wrong-value", here, "a local path", found_value(text), "only inventories may be URIs")
                continue
            path = self.absolute(text)
            if not self.once(path, here):
                self.twice(here, path)
            paths.append(path)
        return tuple(paths)

    def inventories(self, value: object, where: str) -> tuple[str, ...]:
        paths: list[str] = []
        for index, item in enumerate(self.items(value, where, "paths, globs or URIs")):
            here = f"{where}[{index}]"
            text = self.path(item, here)
            if text is None:
                continue
            if is_uri(text) or not glob.has_magic(text):
                path = _normal_uri(text) if is_uri(text) else self.absolute(text)
                if not self.once(path, here):
                    self.twice(here, path)
                paths.append(path)
                continue
            matches = self.matches(text)
            if not matches:
                fix = "correct the glob, or take the inventories with `logdirctl inventory` first"
                self.problem(
                    "glob-without-match",
                    here,
                    "a glob that matches a file",
                    f"no match for {shown(text)!r}",
                    fix,
                )
            again = [path for path in matches if not self.once(path, here)]
            if again:
                self.twice(here, again[0], len(again) - 1)
            paths += matches
        return tuple(paths)

    def matches(self, pattern: str) -> list[str]:
        """Return the files that a glob matches, sorted; directories are ignored."""
        whole = os.path.join(glob.escape(self.folder), pattern)
        found = glob.glob(whole, recursive=True)  # noqa: PTH207 - Path.glob takes no absolute patterns
        files = {self.absolute(path) for path in found if not Path(path).is_dir()}
        return sorted(files, key=os.fsencode)

    def twice(self, where: str, path: str, more: int = 0) -> None:
        others = f" (and {more} more)" if more else ""
        found = f"{shown(path)}{others}, listed by {self.listed[path]} already"
        self.problem("listed-twice", where, "each path once in the whole file", found, "list the path once")

    def broker(self, value: object, where: str) -> BrokerEntry | None:
        known = {"node_id": True, "rack": False, "log_dirs": False, "inventories": False}
        keys = self.mapping(value, where, known)
        if keys is None:
            return None
        node_id = self.given(keys, "node_id", where, lambda v, w: self.integer(v, w, 0))
        rack = self.given(keys, "rack", where, self.text)
        log_dirs = self.given(keys, "log_dirs", where, self.log_dirs) or ()
        inventories = self.given(keys, "inventories", where, self.inventories) or ()
        if not keys.get("log_dirs") and not keys.get("inventories"):
            self.problem("nothing-listed", where, "log_dirs or inventories", "none", "list what this broker has")
        if node_id is None:
            return None
        return BrokerEntry(node_id=node_id, rack=rack, log_dirs=log_dirs, inventories=inventories)

    def given(self, keys: Mapping[str, Any], key: str, where: str, read: Callable[[object, str], _T]) -> _T | None:
        """Return ``read`` of the value of a key; ``None`` if the key is missing, or optional and null."""
        # A missing key means null (design §7); for a required key null is wrong.
        needed = key in ("name", "node_id", "brokers")
        return read(keys[key], f"{where}.{key}") if key in keys and (needed or keys[key] is not None) else None

    def racks(self, value: object, where: str) -> Literal["respect", "ignore"]:
        if value == "ignore":
            return "ignore"
        if not isinstance(value, str):
            self.problem("wrong-type", where, "respect or ignore", found_value(value))
        elif value != "respect":
            self.problem("wrong-value", where, "respect or ignore", found_value(value))
        return "respect"

    def name(self, value: object, where: str) -> str | None:
        text = self.text(value, where, empty=True)
        if text is None:
            return None
        # Divergence: `.` and `..` fit the letters of design §7.2, but a plan has a directory of that name.
        if _NAME.fullmatch(text) is None or text in {".", ".."}:
            expected = "1 to 64 of A-Z a-z 0-9 . _ - (not . or .. alone)"
            self.problem("wrong-value", where, expected, found_value(text))
            return None
        return text

    def cluster(self, value: object, where: str, named: dict[str, str]) -> Cluster | None:
        known = {
            "name": True, "cluster_id": False, "min.insync.replicas": False, "topics": False, "racks": False,
            "brokers": True,
        }  # fmt: skip
        keys = self.mapping(value, where, known)
        if keys is None:
            return None
        name = self.given(keys, "name", where, self.name)
        if name is not None and named.setdefault(name, where) != where:
            found = f"{name!r}, the name of {named[name]} too"
            self.problem("listed-twice", f"{where}.name", "each cluster name once", found, "give it another name")
        cluster_id = self.given(keys, "cluster_id", where, self.text)
        least = self.given(keys, "min.insync.replicas", where, lambda v, w: self.integer(v, w, 1))
        topics = self.given(keys, "topics", where, self.topics) or ()
        racks = self.given(keys, "racks", where, self.racks) or "respect"
        items = self.given(keys, "brokers", where, lambda v, w: self.items(v, w, "brokers")) or []
        if keys.get("brokers") == []:
            self.problem("nothing-listed", f"{where}.brokers", "at least one broker", "none", "list its brokers")
        brokers = [self.broker(item, f"{where}.brokers[{index}]") for index, item in enumerate(items)]
        if name is None:
            return None
        return Cluster(
            name=name, cluster_id=cluster_id, min_insync_replicas=least, topics=topics, racks=racks,
            brokers=tuple(broker for broker in brokers if broker is not None),
        )  # fmt: skip

    def fleet(self, document: object) -> Fleet:
        if document is None:
            self.problem("nothing-listed", "", "clusters", "an empty file", "write one as in docs/fleet.md")
            return Fleet(clusters=())
        keys = self.mapping(document, "", {"clusters": True}) or {}
        items = self.items(keys["clusters"], "clusters", "clusters") if "clusters" in keys else []
        if keys.get("clusters") == []:
            self.problem("nothing-listed", "clusters", "at least one cluster", "none", "list your clusters")
        named: dict[str, str] = {}
        clusters = [self.cluster(item, f"clusters[{index}]", named) for index, item in enumerate(items)]
        return Fleet(clusters=tuple(cluster for cluster in clusters if cluster is not None))


def _normal_uri(uri: str) -> str:
    """Return the form of a URI in which equal ones are equal texts; of a local ``file:`` URI the path."""
    parts = urlsplit(uri)
    if parts.scheme == "file" and parts.netloc in {"", "localhost"} and not parts.query and not parts.fragment:
        path = os.path.normpath(unquote(parts.path))
        return path[1:] if path.startswith("//") else path
    scheme, rest = uri.split("://", 1)
    return f"{scheme.lower()}://{rest}"


def parse_fleet(data: bytes, path: str) -> Fleet:
    """Parse the bytes of a fleet file. Reads the disk only to expand globs.

    Args:
        data: YAML, UTF-8.
        path: Path of the file, for messages, and as the base of relative paths.

    Returns:
        The fleet, everything in the file's order.

    Raises:
        ConfigError: the file has problems; the error contains all of them.
    """
    document = load_document(data, path, slug="fleet-file")
    reader = _Reader(path, os.path.dirname(os.path.abspath(path)))
    fleet = reader.fleet(document)
    if reader.problems:
        raise ConfigError(tuple(reader.problems))
    return fleet


def read_fleet(path: str) -> Fleet:
    """Read a fleet file.

    Args:
        path: A local path.

    Returns:
        As ``parse_fleet``.

    Raises:
        ConfigError: the file cannot be read, or has problems.
    """
    try:
        data = read_regular(path, _MAX_BYTES + 1)
    except OSError as error:
        found = error.strerror or str(error)
        raise ConfigError(
            (Problem("fleet-file", path, "a fleet file that can be read", found, "name another file"),)
        ) from error
    if len(data) > _MAX_BYTES:
        raise ConfigError((Problem("fleet-file", path, "a fleet file", f"more than {_MAX_BYTES} bytes"),))
    return parse_fleet(data, path)
