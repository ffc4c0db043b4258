"""Paths of the metadata tree: what is shown can be typed again, patterns fit as in the stock shell."""

from __future__ import annotations

import random

import pytest

from logdir.metadata.paths import path_of, resolve, shown, words

_LETTERS = "abc-.,!^exuUnrt01*?[]{}\\/'\" \n\t\0\x1b\x7f\x9b\u00a0\u2028é\U0001f600"


def names(path: str, working: tuple[str, ...] = ()) -> list[str | None]:
    return [step.name for step in resolve(working, path)]


def test_what_is_shown_can_be_typed_again() -> None:
    rng = random.Random(20_261_121)
    fixed = ["", ".", "..", "...", "/", "//", "\\", "*", "a/b", "\x1b[31m", "a b", "'", '"', "{", "{a,b}", "[a", "\\e"]
    for at in range(20_000):
        name = fixed[at] if at < len(fixed) else "".join(rng.choices(_LETTERS, k=rng.randrange(8)))
        path = path_of(("x", name))
        assert path.isprintable()
        assert names(path) == ["x", name]
        # Also through the words of a line.
        (command, word) = words(f"cat {path}")
        assert (command, names(word)) == ("cat", ["x", name])


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/", []),
        ("", ["w", "v"]),
        (".", ["w", "v"]),
        ("//a///b//", ["a", "b"]),
        ("a/./b", ["w", "v", "a", "b"]),
        ("..", ["w"]),
        ("../..", []),
        ("../../../..", []),
        ("/../a", ["a"]),
        ("/a/../../b", ["b"]),
        ("/a*/..", []),
        ("...", ["w", "v", "..."]),
        ("\\..", ["w", "v", ".."]),
        ("a\\/b", ["w", "v", "a/b"]),
        ("\u2215", ["w", "v", "\u2215"]),
        ("\\x41\\u00e9\\U0001f600\\n", ["w", "v", "Aé\U0001f600\n"]),
        ("\\x4", ["w", "v", "x4"]),
        ("\\U00110000", ["w", "v", "U00110000"]),
        ("\\", ["w", "v", "\\"]),
        ("\\e", ["w", "v", ""]),
    ],
)
def test_steps_of_a_path(path: str, found: list[str]) -> None:
    assert names(path, ("w", "v")) == found


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("*", ["", "a", "a.b", "\n"], []),
        ("a**b", ["ab", "axxb"], ["a"]),
        ("?", ["a", "\n", "."], ["", "ab"]),
        ("a.c", ["a.c"], ["abc"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "x", "-x"]),
        ("[!a-c]", ["d", "-"], ["a", ""]),
        ("[^a]", ["b"], ["a"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("[a\\]]", ["]", "a"], ["\\"]),
        ("[a\\-c]", ["-", "a", "c"], ["b"]),
        ("[\\x41]", ["A"], ["x"]),
        ("{foo,b?r,}", ["foo", "bar", ""], ["fooo", "br"]),
        ("x{a,b}[01]", ["xa0", "xb1"], ["xc0", "xa2"]),
        ("a\\*", ["a*"], ["ab"]),
        ("a,b", ["a,b"], ["a"]),
        ("a}", ["a}"], []),
        # None of these is a pattern: they are taken as they stand.
        ("[a", ["[a"], ["a"]),
        ("{a", ["{a"], ["a"]),
        ("{a,{b}}", ["{a,{b}}"], ["a"]),
        ("[z-a]", ["[z-a]"], ["z"]),
        ("[]", ["[]"], ["]"]),
    ],
)
def test_patterns(pattern: str, fitting: list[str], others: list[str]) -> None:
    (step,) = resolve((), pattern)
    assert [name for name in (*fitting, *others) if step.fits(name)] == fitting


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", []),
        ("  ls  ", ["ls"]),
        ("cat a b\tc", ["cat", "a", "b", "c"]),
        ("cat 'a b'", ["cat", "a\\ b"]),
        ('cat "*"', ["cat", "\\*"]),
        ("cat a'/b'/c", ["cat", "a/b/c"]),
        ("cat ''", ["cat", ""]),
        ("cat a\\ b", ["cat", "a\\ b"]),
        ("cat 'it\\'s'", ["cat", "it\\'s"]),
        ("cat \\", ["cat", "\\"]),
    ],
)
def test_words_of_a_line(line: str, found: list[str]) -> None:
    assert words(line) == found


@pytest.mark.parametrize("line", ["'", 'cat "a', "cat 'a\\'"])
def test_a_quote_must_be_closed(line: str) -> None:
    with pytest.raises(ValueError, match="no closing"):
        words(line)


def test_nothing_that_can_be_typed_is_an_error() -> None:
    rng = random.Random(3)
    for _ in range(20_000):
        text = "".join(rng.choices(_LETTERS, k=rng.randrange(12)))
        for step in resolve(("w",), text):
            step.fits("abc")
        assert shown(text).isprintable()
