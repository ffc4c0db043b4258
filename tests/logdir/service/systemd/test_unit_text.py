"""Words of unit files, read back as systemd reads them, and the seal of a file of ours."""

from __future__ import annotations

import shlex

import pytest

from logdir.service.systemd.unit_text import argument, is_sealed, is_writable, sealed, word

HOSTILE = ["/d 1", '/d"1"', "/d\\1", "/d'1", "/50%", "/%i", "/d;1", "/d#1", "/dä", "/[d]*", "/d,1", "/d\\"]


def read_back(text: str) -> str:
    """Read a word as ``EXTRACT_UNQUOTE`` does, then take ``%%`` for ``%``; within quotes ``shlex`` knows the same."""
    (found,) = shlex.split(text)
    return found.replace("%%", "%")


@pytest.mark.parametrize("path", [*HOSTILE, "/data/d1", "/$HOME"])
def test_a_path_is_one_word_and_no_specifier(path: str) -> None:
    assert read_back(word(path)) == path
    assert "%" not in word(path).replace("%%", "")


@pytest.mark.parametrize("path", [*HOSTILE, "/$HOME/${x}", "/$$"])
def test_an_argument_names_no_variable(path: str) -> None:
    assert read_back(argument(path)).replace("$$", "$") == path
    assert "$" not in argument(path).replace("$$", "")


@pytest.mark.parametrize("path", ["/d\n1", "/d\x1b1", "/d\udcff", "/d\x7f", "/d\t1"])
def test_what_no_line_of_a_unit_can_hold_is_known(path: str) -> None:
    assert not is_writable(path)


@pytest.mark.parametrize("change", ["# mine\n", " ", "\n"])
def test_a_file_that_was_changed_is_none_of_ours(change: str) -> None:
    text = sealed("[Service]\nUser=kafka\n")
    assert is_sealed(text)
    assert not is_sealed(text + change)
    assert not is_sealed(text.replace("kafka", "root"))
    assert not is_sealed("[Service]\nUser=kafka\n")


def test_a_head_of_another_release_is_ours_all_the_same() -> None:
    head, _, rest = sealed("[Service]\n").partition("\n# sha256")
    assert is_sealed(f"# Written by another release.\n# sha256{rest}")
    assert "logdirctl init --systemd" in head
