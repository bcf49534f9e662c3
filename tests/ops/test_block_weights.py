"""MatMulNBits and GatherBlockQuantized: packed weights in blocks, everything else float.

The sums of a product are floats in any order: results agree to a few float32 units of the sum of
the products' magnitudes (float16: of float16), which is what `near` allows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.ops.quantize import Dequantize
from support.models import Array, Fed, qoperator_model
from support.runtime import run_onnxruntime
from support.wings import apart, refusal_of

F32 = np.float32


def pack(codes: Array, bits: int) -> Array:
    """Codes in bytes along the last axis, the first in the lowest bits, one after the other."""
    lines = codes.reshape(-1, codes.shape[-1])
    width = -(-codes.shape[-1] * bits // 8)
    out = np.zeros((len(lines), width), np.uint8)
    for i, line in enumerate(lines):
        for j, code in enumerate(line):
            out[i, j * bits // 8] |= int(code) << (j * bits % 8)
    return out.reshape(*codes.shape[:-1], width)


class Case:
    """A MatMulNBits of random weights, and its result in float64."""

    def __init__(
        self, bits: int, zeros: str = "none", *, rows: int = 40, block: int = 16, seed: int = 0,
        biased: bool = False, groups: str = "", dtype: Any = F32, scales: str = "positive",
        **attributes: int,
    ) -> None:  # fmt: skip
        rng, columns = np.random.default_rng(seed), 5
        count = -(-rows // block)
        codes = rng.integers(0, 1 << bits, (columns, count, block))
        scale = rng.uniform(0.01, 0.1, (columns, count)).astype(dtype)
        if scales == "any":
            scale *= rng.choice(np.asarray([-1, 0, 1], dtype), scale.shape)
        zero, given = np.full(scale.shape, float(1 << (bits - 1))), None
        if zeros == "packed":
            zero = rng.integers(0, 1 << bits, scale.shape)
            given = pack(zero, bits)
        elif zeros in ("whole", "fraction"):
            real = rng.uniform(0, (1 << bits) - 1, scale.shape)
            zero = given = (np.rint(real) if zeros == "whole" else real).astype(dtype)
        block_of = np.arange(rows) // block
        block_of = rng.permutation(block_of) if groups == "mixed" else block_of
        bias = rng.normal(size=columns).astype(dtype) if biased else None
        self.a = rng.normal(size=(2, 3, rows)).astype(dtype)
        flat = codes.reshape(columns, -1)[:, :rows].astype(np.float64)
        w = (flat - zero[:, block_of]) * scale.astype(np.float64)[:, block_of]
        self.wanted = self.a.astype(np.float64) @ w.T + (0 if bias is None else bias)
        self.size = np.abs(self.a.astype(np.float64)) @ np.abs(w).T + 1
        parts: list[Any] = [
            Fed("a", self.a.shape, dtype=dtype), pack(codes, bits), scale, given,
            block_of.astype(np.int32) if groups else None, bias,
        ]  # fmt: skip
        attrs = {"K": rows, "N": columns, "bits": bits, "block_size": block, **attributes}
        self.model = qoperator_model("MatMulNBits", parts, dtype, attrs=attrs)

    def near(self, found: dict[str, Array]) -> None:
        unit = np.finfo(self.a.dtype).eps
        assert found["y"].dtype == self.a.dtype
        assert np.all(np.abs(found["y"] - self.wanted) <= 4 * unit * self.size)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 999),
    bits=st.sampled_from([2, 4, 8]),
    zeros=st.sampled_from(["none", "packed"]),
    rows=st.sampled_from([16, 32, 40, 100]),
    block=st.sampled_from([16, 32]),
    biased=st.booleans(),
    scales=st.sampled_from(["positive", "any"]),
    groups=st.sampled_from(["", "in turn"]),
)
def test_matmul_nbits_is_a_float_product_of_constant_codes(
    seed: int, bits: int, zeros: str, rows: int, block: int, biased: bool, scales: str, groups: str
) -> None:
    groups = groups if bits == 4 else ""
    case = Case(bits, zeros, rows=rows, block=block, biased=biased, scales=scales, seed=seed,
                groups=groups)  # fmt: skip
    graph = intonnx.import_model(case.model)
    assert isinstance(graph.nodes[0].op, Dequantize)
    kind = graph.types[graph.nodes[0].operands[0]]
    assert (kind.dtype.bits, kind.params.block, kind.shape) == (bits, block, (rows, 5))
    for exact in (
        intonnx.compile(graph).run({"a": case.a}),
        run_onnxruntime(case.model, {"a": case.a}, optimized=False),
        run_onnxruntime(intonnx.to_onnx(graph), {"a": case.a}, optimized=True),
    ):
        case.near(exact)
    literal = intonnx.to_onnx(graph, form="qdq")
    assert {node.domain for node in literal.graph.node} == {""}
    case.near(intonnx.compile(intonnx.import_model(literal)).run({"a": case.a}))


def test_the_export_is_matmul_nbits_again_and_a_second_import_is_the_same() -> None:
    case = Case(4, "packed", biased=True)
    graph = intonnx.import_model(case.model)
    exported = intonnx.to_onnx(graph)
    assert [node.op_type for node in exported.graph.node] == ["MatMulNBits", "Add"]
    again = intonnx.import_model(exported)
    codes = [g.types[g.nodes[0].operands[0]] for g in (graph, again)]
    assert codes[0] == codes[1]
    found = [intonnx.compile(g).run({"a": case.a}) for g in (graph, again)]
    apart(found[0], found[1], 0)


def test_floats_stay_floats_although_the_model_allows_int8() -> None:
    """`accuracy_level` 4 lets a runtime quantize the floats; the export does not."""
    case = Case(4, rows=64, block=32, accuracy_level=4)
    exported = intonnx.to_onnx(intonnx.import_model(case.model))
    case.near(run_onnxruntime(exported, {"a": case.a}, optimized=True))


@pytest.mark.parametrize("form", ["qlinear", "qdq"])
def test_the_standard_operators_dequantize(form: Any) -> None:
    case = Case(8)
    exported = intonnx.to_onnx(intonnx.import_model(case.model), form=form, runtime="standard")
    assert [node.op_type for node in exported.graph.node] == ["DequantizeLinear", "MatMul"]
    case.near(run_onnxruntime(exported, {"a": case.a}, optimized=False))


def test_zero_points_that_are_whole_floats_are_codes() -> None:
    case = Case(4, "whole")
    graph = intonnx.import_model(case.model)
    assert isinstance(graph.nodes[0].op, Dequantize)
    case.near(intonnx.compile(graph).run({"a": case.a}))


@pytest.mark.parametrize(
    ("options", "code"),
    [({"zeros": "fraction"}, "unsupported-type"), ({"groups": "mixed"}, "unsupported-attribute")],
)
def test_what_is_no_code_is_kept_and_runs(options: dict[str, Any], code: str) -> None:
    case = Case(4, **options)
    assert refusal_of(case.model, "MatMulNBits")[0] == code
    graph = intonnx.import_model(case.model)
    assert graph.types["y"].shape == (2, 3, 5)
    case.near(intonnx.compile(graph).run({"a": case.a}))
    case.near(run_onnxruntime(intonnx.to_onnx(graph), {"a": case.a}, optimized=False))


def test_float16() -> None:
    case = Case(4, dtype=np.float16)
    graph = intonnx.import_model(case.model)
    case.near(intonnx.compile(graph).run({"a": case.a}))
    case.near(run_onnxruntime(intonnx.to_onnx(graph), {"a": case.a}, optimized=True))


def test_weights_of_another_size_are_an_error() -> None:
    case = Case(4)
    broken = onnx.ModelProto()
    broken.CopyFrom(case.model)
    for attribute in broken.graph.node[0].attribute:
        if attribute.name == "N":
            attribute.i = 7
    with pytest.raises(intonnx.ImportFailure, match="elements"):
        intonnx.import_model(broken)


def test_a_model_that_does_not_import_the_domain() -> None:
    case = Case(4)
    sloppy = onnx.ModelProto()
    sloppy.CopyFrom(case.model)
    del sloppy.opset_import[1:]
    graph = intonnx.import_model(sloppy)
    case.near(intonnx.compile(graph).run({"a": case.a}))
    case.near(run_onnxruntime(intonnx.to_onnx(graph), {"a": case.a}, optimized=False))
    assert len(sloppy.opset_import) == 1


# -- GatherBlockQuantized -------------------------------------------------------------------------


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("index", [(3,), (2, 3), ()])
def test_gather_block_quantized_is_a_gather_of_dequantized_rows(
    bits: int, zeros: bool, index: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(bits)
    codes, scale = rng.integers(0, 1 << bits, (6, 32)), rng.uniform(0.01, 0.1, (6, 2)).astype(F32)
    zero = pack(rng.integers(0, 1 << bits, (6, 2)), bits) if zeros else None
    rows = rng.integers(-6, 6, index)
    parts: list[Any] = [pack(codes, bits), Fed("i", index, dtype=np.int64), scale, zero]
    attrs = {"bits": bits, "block_size": 16, "quantize_axis": 1, "gather_axis": 0}
    model = qoperator_model("GatherBlockQuantized", parts, F32, attrs=attrs)
    wanted = run_onnxruntime(model, {"i": rows}, optimized=False)
    graph = intonnx.import_model(model)
    apart(intonnx.compile(graph).run({"i": rows}), wanted, 0)
    apart(run_onnxruntime(intonnx.to_onnx(graph), {"i": rows}, optimized=True), wanted, 0)
