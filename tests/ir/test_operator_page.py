"""docs/operators.md is what the classes say."""

from __future__ import annotations

from pathlib import Path

import pytest

from intonnx.ir.op import registered_ops
from intonnx.ir.operator_page import operators_page


def test_the_page_of_operators_is_the_generated_one() -> None:
    page = Path(__file__).parents[2] / "docs" / "operators.md"
    if not page.exists():
        pytest.skip("the tests run outside the repository, against an installed wheel")
    assert page.read_text() == operators_page()


def test_every_operator_has_a_section_with_its_constraints() -> None:
    text = operators_page()
    sections = {part.split("\n", 1)[0]: part for part in text.split("\n## ")[1:]}
    assert sections.keys() == registered_ops().keys() - {"onnx"}
    assert "- `C1`: " in sections["qnn.conv2d"]
    assert "`strides`" in sections["qnn.conv2d"]
    without = {name for name, part in sections.items() if "`C1`" not in part}
    assert without == {"qnn.identity", "qnn.maximum", "qnn.subtract"}  # any type; as its sibling
