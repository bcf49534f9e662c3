"""The guide names reason codes that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from intonnx.ir.reasons import Code

GUIDE = Path(__file__).resolve().parents[2] / "docs/producers.md"


@pytest.mark.skipif(not GUIDE.is_file(), reason="reads the repository, not the product")
def test_the_reason_codes_of_the_guide() -> None:
    text = GUIDE.read_text()
    named = set(re.findall(r"`([a-z]+(?:-[a-z0-9]+)+)`", text))
    assert named <= {str(code) for code in Code}
    assert len(named) >= 7
    assert max(map(len, text.splitlines())) < 240
