"""The onnx project's own test-suite, unchanged, on our backend.

`known.toml` names every test that is not asked for, with its reason.
"""

from __future__ import annotations

import tomllib
import warnings
from pathlib import Path
from unittest import TestCase

from onnx.backend.test import BackendTest

from intonnx.backend import IntonnxBackend

KNOWN = tomllib.loads(Path(__file__).with_name("known.toml").read_text())


def suite() -> dict[str, type[TestCase]]:
    """The suite's test cases, without the copies for other devices."""
    with warnings.catch_warnings():
        # The suite computes what it expects, some of it infinite, when it is loaded.
        warnings.simplefilter("ignore")
        runner = BackendTest(IntonnxBackend, __name__)
    for name in KNOWN["fails"]:
        runner.xfail(f"^{name}_cpu$")
    for name in KNOWN["left_out"]:
        runner.exclude(f"^{name}_cpu$")
    found: dict[str, type[TestCase]] = runner.test_cases
    # Large float networks, which take a minute and hold no operator that is not tested alone.
    del found["OnnxBackendRealModelTest"]
    for case in found.values():
        for name in [name for name in vars(case) if name.endswith("_cuda")]:
            delattr(case, name)
    return found


SUITE = suite()
globals().update(SUITE)


def names() -> set[str]:
    """Every test of the suite."""
    return {
        name.removesuffix("_cpu")
        for case in SUITE.values()
        for name in vars(case)
        if name.startswith("test_")
    }


def test_the_suite_is_whole() -> None:
    node = vars(SUITE["OnnxBackendNodeModelTest"])
    found = [name for name in node if name.startswith("test_")]
    assert len(found) >= 1800
    quantized = [n for n in found if "quantize" in n or "qlinear" in n or "integer" in n]
    assert len(quantized) >= 45


def test_what_is_known_exists_and_has_a_reason() -> None:
    known = {**KNOWN["fails"], **KNOWN["left_out"]}
    assert len(known) == len(KNOWN["fails"]) + len(KNOWN["left_out"])
    assert set(known) <= names()
    assert all(known.values())
    assert not [name for name in known if "quantize" in name or "qlinear" in name]
