"""Every boundary: integer here, and what onnxruntime computes without optimization.

The table is in the files of its sections; `checking` says what each case must satisfy.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from boundaries.checking import check
from boundaries.elementwise import ELEMENTWISE
from boundaries.matrix import MATRIX
from boundaries.movers import MOVERS
from boundaries.patterns import Case, cases
from boundaries.pools import POOLS

TABLE = list(cases([*MATRIX, *ELEMENTWISE, *POOLS, *MOVERS]))


def test_the_table_is_whole() -> None:
    assert len(TABLE) >= 330
    assert len({case.id for case in TABLE}) == len(TABLE)


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.id)
def test_boundary(case: Case, record_property: Callable[[str, object], None]) -> None:
    check(case, record_property)
