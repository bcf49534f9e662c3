"""Element-wise operators on two operands that have no QLinear operator: literal everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import intonnx
from intonnx.ir.op import Op
from intonnx.ir.types import DType, QuantParams, plain, quantized
from support.models import Array, Builder, Fed, Held, Params, qdq_model, s8, s16, u8
from support.strategies import BinaryCase
from support.wings import check_model, refusal_of

ALL = np.arange(256, dtype=np.uint8)
OUT = QuantParams(storage=DType.U8, scale=0.5, zero_point=1)


def check_pair(
    op_type: str,
    case: BinaryCase,
    *,
    quanta: int = 0,
    quantized_input: bool = True,
) -> intonnx.Graph:
    """DQ, DQ -> op -> Q on the codes of a case, through every wing.

    Without `quantized_input` the graph inputs are floats of which some lie between two codes.
    """
    named = {"a": (case.a, case.a_params), "b": (case.b, case.b_params)}
    sides = [Fed(k, v.shape, p, quantized_input) for k, (v, p) in named.items()]
    inputs = {k: v for k, (v, _) in named.items()}
    if not quantized_input:
        inputs = {k: _near(v, p) for k, (v, p) in named.items()}
    return check_model(
        qdq_model(op_type, sides, out=case.out),
        inputs,
        quanta=quanta,
        literal_quanta=quanta,
        export_quanta=quanta,
        kernel=False,
    )


def _near(codes: Array, params: Params) -> Array:
    real = (codes.astype(np.float32) - params.zero_array) * params.scale_array
    return np.asarray(real + params.scale_array * np.float32(0.3), np.float32)


def check_every_pair(op_type: str, case: BinaryCase, *, quanta: int = 0) -> None:
    """All 65,536 pairs of two 8-bit types, whatever the case's codes are."""
    a = ALL.view(np.dtype(case.a_params.dtype))[:, None]
    b = ALL.view(np.dtype(case.b_params.dtype))
    whole = BinaryCase(a, b, case.a_params, case.b_params, case.out)
    check_pair(op_type, whole, quanta=quanta)


HELD: list[Params | None] = [
    u8(0.031, 17),
    s8(0.031, -17),
    s16(0.0007, 3),
    s8([0.02, 0.1, 0.5], [0, 5, -5], axis=0),
    None,
]
"""Parameters of a constant of shape [3, 1]; None for a float constant."""


def constant(held: Params | None, shape: tuple[int, ...] = (3, 1)) -> Held:
    """A constant operand of both signs."""
    rng = np.random.default_rng(0)
    if held is None:
        return Held(rng.standard_normal(shape).astype(np.float32))
    return Held(rng.integers(0, 128, shape), held)


def check_constant_operand(op_type: str, held: Held, *, first: bool, quanta: int = 0) -> None:
    """A constant beside codes of shape [2, 3, 4]."""
    sides = [Fed("x", (2, 3, 4), s8(0.02, -14), quantized=True), held]
    model = qdq_model(op_type, sides[::-1] if first else sides, out=u8(0.05, 90))
    x = np.random.default_rng(1).integers(-128, 128, (2, 3, 4)).astype(np.int8)
    more = {"literal_quanta": quanta, "export_quanta": quanta}
    check_model(model, {"x": x}, quanta=quanta, kernel=False, **more)


def check_float16(op_type: str) -> None:
    """Real values of float16, which onnxruntime computes in float32 and rounds."""
    build, names = Builder(), []
    for name, scale in (("a", 0.02), ("b", 0.03)):
        build.feed(name, (4, 64), np.uint8)
        given = [build.constant(f"{name}_scale", np.float16(scale))]
        given.append(build.constant(f"{name}_zero", np.uint8(9)))
        names.append(build.node("DequantizeLinear", [name, *given]))
    real = build.node(op_type, names)
    out = [build.constant("y_scale", np.float16(0.04)), build.constant("y_zero", np.uint8(9))]
    build.output(build.node("QuantizeLinear", [real, *out], name="y"), np.uint8)
    rng = np.random.default_rng(0)
    inputs = {name: rng.integers(0, 256, (4, 64)).astype(np.uint8) for name in "ab"}
    # Where the graph lets it, onnxruntime leaves out the rounding of the operands to float16.
    check_model(build.model(), inputs, quanta=1, literal_quanta=1, export_quanta=1, kernel=False)


def check_constraints(make: Any) -> None:
    """C1 to C3 of `Binary`; `make` makes the operator from the parameters of its result."""
    codes, reals = quantized(OUT, (3,)), plain(DType.F32, (3,))
    half = quantized(OUT.model_copy(update={"expressed": DType.F16}), (3,))
    several = QuantParams(storage=DType.U8, scale=np.ones(3), zero_point=np.zeros(3), axis=0)
    op: Op = make(OUT)
    for pair in ((reals, reals), (codes, half), (half, reals)):
        with pytest.raises(intonnx.TypeFailure, match="C1"):
            op.infer(pair)
    with pytest.raises(intonnx.TypeFailure, match="C2"):
        op.infer((codes, codes.with_shape((2,))))
    with pytest.raises(intonnx.TypeFailure, match="C3"):
        make(several).infer((codes, codes))
    assert op.infer((codes.with_shape(("N", 1)), reals))[0] == quantized(OUT, ("N", 3))


def check_refusals(op_type: str) -> None:
    """A float operand, no quantizer after it, several scales after it."""
    sides = [Fed("a", (4,), u8(0.1, 3)), Fed("b", (4,))]
    code, detail = refusal_of(qdq_model(op_type, sides, out=u8(0.2)), op_type)
    assert code == "input-not-quantized"
    assert "'b' arrives as float" in detail
    sides = [Fed("a", (4,), u8(0.1, 3)), Fed("b", (4,), u8(0.1, 3))]
    assert refusal_of(qdq_model(op_type, sides), op_type)[0] == "output-not-quantized"
    several = u8([0.1] * 4, 3, axis=0)
    assert refusal_of(qdq_model(op_type, sides, out=several), op_type)[0] == "per-axis-input"
