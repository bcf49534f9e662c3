"""The suite's numbers are its own: what numpy warns of in them is no concern of ours."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the suite's tests, and no others, warn."""
    for item in items:
        if item.nodeid.startswith("tests/conformance/") and item.parent is not None:
            item.add_marker(pytest.mark.filterwarnings("ignore"))
