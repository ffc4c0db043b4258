"""Labels, samples and vectors, and the one error of this package."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

NAME = "__name__"
Labels = frozenset[tuple[str, str]]
"""Pairs of name and value; a label without a value is absent."""


class PromqlError(Exception):
    """A text that Prometheus would refuse, or that this package does not read; the message says which."""


class Sample(NamedTuple):
    """One element of an instant vector."""

    labels: Labels
    value: float
    at_ms: int
    """When the sample was taken; of a computed one the instant of the evaluation."""


Vector = tuple[Sample, ...]
Value = float | str | Vector


def labels_of(pairs: Iterable[tuple[str, str]] = (), **named: str) -> Labels:
    """Return labels; one without a value is left out."""
    return frozenset((name, value) for name, value in (*pairs, *named.items()) if value)


def value_of(labels: Labels, name: str) -> str:
    """Return the value of a label; empty if it is absent."""
    return next((value for one, value in labels if one == name), "")


def keeping(labels: Labels, names: Collection[str]) -> Labels:
    """Return the labels with these names."""
    return frozenset(pair for pair in labels if pair[0] in names)


def without(labels: Labels, names: Collection[str]) -> Labels:
    """Return the labels with all other names."""
    return frozenset(pair for pair in labels if pair[0] not in names)


def nameless(labels: Labels) -> Labels:
    """Return the labels without the name of the metric."""
    return without(labels, (NAME,))


def replaced(labels: Labels, name: str, value: str) -> Labels:
    """Return the labels with another value of one of them; an empty one takes it away."""
    return without(labels, (name,)) | labels_of(((name, value),))


def shown(labels: Labels) -> str:
    """Return labels as Prometheus writes them."""
    inner = ", ".join(f'{name}="{value}"' for name, value in sorted(labels) if name != NAME)
    return f"{value_of(labels, NAME)}{{{inner}}}"


def distinct(vector: Iterable[Sample]) -> Vector:
    """Return a vector, in which each set of labels may be once.

    Raises:
        PromqlError: one is there twice.
    """
    found = tuple(vector)
    if len({one.labels for one in found}) < len(found):
        raise PromqlError("vector cannot contain metrics with the same labelset")
    return found
