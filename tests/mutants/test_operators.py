"""What the operators change, and what they leave."""

from __future__ import annotations

import ast
from collections import Counter

import pytest
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example

from tests.mutants.operators import GUARDS, OPERATORS, OneToOne
from tests.mutants.sown import drawn, every


@pytest.mark.parametrize(
    ("operator", "example"), [(one, example) for one in OPERATORS for example in one.examples()], ids=str
)
def test_no_operator_changes_anything_but_what_it_says(operator: type[OneToOne], example: Example) -> None:
    found = mutate_code(example.pre_mutation_code, operator(), example.occurrence)
    assert (found or example.pre_mutation_code) == example.post_mutation_code


def test_no_docstring_annotation_decorator_or_import_is_changed() -> None:
    source = 'from a import b\n@c(d=True)\ndef f(x: int) -> "list[2]":\n    """Not 3."""\n    y: tuple[4] = (5)\n'
    made = {mutate_code(source, operator(), number) for operator in OPERATORS for number in range(5)} - {None}
    assert made == {source.replace("(5)", "(6)")}


def test_no_name_is_given_twice_and_none_depends_on_another_function() -> None:
    mutants = every()
    assert max(Counter(one.key for one in mutants).values()) == 1
    assert len(drawn()) >= 600
    assert {one.operator for one in drawn()} >= GUARDS


def test_what_is_changed_can_be_compiled() -> None:
    for mutant in drawn()[::40]:
        ast.parse(mutant.text())
