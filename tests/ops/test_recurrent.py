"""DynamicQuantizeLSTM: kept, run by our own numpy form, against onnxruntime.

The products are exact. Sigmoid and tanh of float32 differ by a unit in the last place between
libraries; a state at a tie is then quantized to its neighbour, one step of 1/255 of the range.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import intonnx
from support.models import MICROSOFT, Array, Builder
from support.runtime import run_onnxruntime
from support.wings import refusal_of

F32 = np.float32
STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 4, 6


def lstm(
    *, direction: str = "forward", columns: bool = False, bias: bool = True,
    lengths: list[int] | None = None, start: bool = False, peepholes: bool = False,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:  # fmt: skip
    rng, many = np.random.default_rng(8), 2 if direction == "bidirectional" else 1
    shape, state = (many, 4 * HIDDEN) if columns else (many,), (many, BATCH, HIDDEN)
    codes = [rng.integers(60, 190, (many, size, 4 * HIDDEN)).astype(np.uint8)
             for size in (INPUTS, HIDDEN)]  # fmt: skip
    parts: list[Any] = [
        *codes,
        rng.normal(0, 0.3, (many, 8 * HIDDEN)).astype(F32) if bias else None,
        None if lengths is None else np.asarray(lengths, np.int32),
        *(rng.normal(0, 0.5, state).astype(F32) if start else None for _ in range(2)),
        rng.normal(0, 0.5, (many, 3 * HIDDEN)).astype(F32) if peepholes else None,
    ]
    for _ in range(2):
        parts += [rng.uniform(0.005, 0.02, shape).astype(F32), np.full(shape, 125, np.uint8)]
    build = Builder(17)
    names = [build.feed("x", (STEPS, BATCH, INPUTS), F32)]
    names += ["" if v is None else build.constant(f"c{i}", v) for i, v in enumerate(parts)]
    build.nodes.append(
        helper.make_node("DynamicQuantizeLSTM", names, ["y", "h", "c"], "n", domain=MICROSOFT,
                         hidden_size=HIDDEN, direction=direction, **attributes)
    )  # fmt: skip
    for name in ("y", "h", "c"):
        build.output(name, F32)
    return build.model(), {"x": rng.normal(size=(STEPS, BATCH, INPUTS)).astype(F32)}


CASES: list[dict[str, Any]] = [
    {},
    {"columns": True, "bias": False},
    {"direction": "reverse", "start": True},
    {"direction": "bidirectional", "peepholes": True},
    {"lengths": [5, 3, 1]},
    {"lengths": [3, 5, 2], "direction": "bidirectional"},
    {"clip": 0.5},
    {"activations": ["Sigmoid", "Tanh", "Tanh"]},
]


@pytest.mark.parametrize("options", CASES, ids=lambda options: "-".join(options) or "plain")
def test_the_kept_operator_runs_as_in_onnxruntime(options: dict[str, Any]) -> None:
    model, inputs = lstm(**options)
    wanted = run_onnxruntime(model, inputs, optimized=False)
    graph = intonnx.import_model(model)
    many = 2 if options.get("direction") == "bidirectional" else 1
    assert graph.types["y"].shape == (STEPS, many, BATCH, HIDDEN)
    assert graph.types["c"].shape == (many, BATCH, HIDDEN)
    found = intonnx.compile(graph).run(inputs)
    assert list(found) == ["y", "h", "c"]
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=0, atol=1e-5, err_msg=name)
    again = run_onnxruntime(intonnx.to_onnx(graph), inputs, optimized=False)
    for name, array in wanted.items():
        np.testing.assert_array_equal(again[name], array)


def test_it_says_why_it_is_float() -> None:
    code, detail = refusal_of(lstm()[0], "DynamicQuantizeLSTM")
    assert code == "no-integer-form"
    assert "one step after the other" in detail


def test_other_activations_are_named() -> None:
    model, inputs = lstm(activations=["HardSigmoid", "Tanh", "Tanh"])
    with pytest.raises(intonnx.RunFailure, match="Sigmoid"):
        intonnx.compile(intonnx.import_model(model)).run(inputs)


def test_it_is_refused_for_a_runtime_with_operators_of_onnx_only() -> None:
    graph = intonnx.import_model(lstm()[0])
    message = r"'n' .*com\.microsoft\.DynamicQuantizeLSTM has no form in operators of ai\.onnx"
    with pytest.raises(intonnx.ExportFailure, match=message):
        intonnx.to_onnx(graph, runtime="standard")
