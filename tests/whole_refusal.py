"""Compares the whole of a refusal, where no command makes its situation: slug, path, expected, found and fix.

Each kind of refusal that ``tests/tools/refusals.py`` does not make has one test that calls this;
``tests/tools/test_refusals.py`` looks for the call.
"""

from __future__ import annotations

from logdir.errors import LogDirError, Problem
from logdir.refusal_slug import Why
from tests.tools.free_text import codes_in


def require_whole(refusal: Problem | LogDirError, why: Why, *, path: str, expected: str, found: str, fix: str) -> None:
    """Fail unless a refusal consists of exactly these parts, none of them is empty, and no text carries a code."""
    problem = refusal.problem() if isinstance(refusal, LogDirError) else refusal
    whole = Problem(why.value, path, expected, found, fix)
    assert problem == whole, f"{problem}, not {whole}"
    assert all(problem), f"empty parts: {problem}"
    assert not list(codes_in(problem._asdict())), f"a code in a text for people: {problem}"
