"""Scales, zero points and weights as producers write them: by nodes, in odd shapes, with axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

import intonnx
from support.models import Array, Builder, Params, s8, u8
from support.runtime import run_onnxruntime
from support.wings import apart, check_model

F32 = np.float32
RNG = np.random.default_rng(3)
SHAPE = (1, 3, 6, 6)
REAL = RNG.normal(0, 0.3, (4, 3, 3, 3)).astype(F32)
CODES = np.clip(np.rint(REAL / 0.01), -127, 127).astype(np.int8)
SCALES = RNG.uniform(0.005, 0.02, 4).astype(F32)
Weights = Callable[[Builder], str]


def model_of(
    weights: Weights,
    *,
    x: Callable[[Builder, str], str] | None = None,
    bias: Weights | None = None,
    after: Callable[[Builder, str], str] | None = None,
    opset: int = 17,
) -> onnx.ModelProto:
    """Q -> DQ -> Conv (-> something) -> Q with these weights."""
    build = Builder(opset)
    value = build.feed("x", SHAPE, F32)
    if x is None:
        value = build.dequantize(build.quantize(value, u8(0.02, 120)), u8(0.02, 120))
    else:
        value = x(build, value)
    inputs = [value, weights(build), *([] if bias is None else [bias(build)])]
    value = build.node("Conv", inputs, name="conv")
    if after is not None:
        value = after(build, value)
    build.output(build.quantize(value, u8(0.05, 100), "y"), np.uint8)
    return build.model()


def plain_weights(build: Builder) -> str:
    return build.dequantize(build.constant("w", CODES), s8(0.01, 0))


def check(model: onnx.ModelProto, quanta: int = 1) -> intonnx.Graph:
    """All integer, and within a quantum of the literal model."""
    inputs = {"x": RNG.normal(0, 1, SHAPE).astype(F32)}
    return check_model(model, inputs, quanta=quanta, literal_quanta=1)


def holds(graph: intonnx.Graph, codes: Array) -> bool:
    """Whether these codes are a constant of the graph."""
    return any(np.array_equal(array, codes) for array in graph.constants.values())


# -- weights ------------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [s8(0.004, -17), u8(0.004, 200), s8(SCALES, 0, axis=0)])
def test_float_weights_behind_q_and_dq_are_codes(params: Params) -> None:
    """AIMET, ModelOpt and quantization-aware training keep the float weights."""

    def weights(build: Builder) -> str:
        return build.dequantize(build.quantize(build.constant("w", REAL), params), params)

    graph = check(model_of(weights))
    assert not any(array.dtype == F32 for array in graph.constants.values())


def test_the_lowest_code_and_a_zero_point() -> None:
    """TensorFlow's and onnxruntime's asymmetric int8 weights use -128."""
    codes = np.where(CODES % 5 == 0, -128, CODES).astype(np.int8)
    graph = check(model_of(lambda b: b.dequantize(b.constant("w", codes), s8(0.01, -3))))
    assert holds(graph, codes)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("zero", [None, "float", "integer"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_weights_through_cast_and_mul(per_channel: bool, zero: str | None, swapped: bool) -> None:
    def weights(build: Builder) -> str:
        value = build.constant("w", CODES)
        if zero == "integer":
            value = build.node("Cast", [value], to=TensorProto.INT32)
            value = build.node("Sub", [value, build.constant("wz", np.int32(3))])
        value = build.node("Cast", [value], to=TensorProto.FLOAT)
        if zero == "float":
            value = build.node("Sub", [value, build.constant("wz", F32(3))])
        scale = SCALES.reshape(4, 1, 1, 1) if per_channel else F32(0.01)
        pair = [value, build.constant("ws", scale)]
        return build.node("Mul", pair[::-1] if swapped else pair)

    graph = check(model_of(weights))
    assert holds(graph, CODES)
    (params,) = [kind.params for kind in graph.types.values() if kind.shape == CODES.shape]
    np.testing.assert_array_equal(params.scale, SCALES if per_channel else F32(0.01))
    assert params.axis == (0 if per_channel else None)
    assert np.all(params.zero_point == (3 if zero else 0))


def test_cast_and_mul_through_a_transpose_and_shared() -> None:
    build = Builder(17)
    value = build.feed("x", (2, 6), F32)
    codes = RNG.integers(-128, 128, (5, 6)).astype(np.int8)
    cast = build.node("Cast", [build.constant("w", codes)], to=TensorProto.FLOAT)
    scaled = build.node(
        "Mul", [cast, build.constant("ws", RNG.uniform(0.01, 0.02, (5, 1)).astype(F32))]
    )
    moved = build.node("Transpose", [scaled], perm=[1, 0])
    real = build.dequantize(build.quantize(value, s8(0.03, 5)), s8(0.03, 5))
    build.output(build.quantize(build.node("MatMul", [real, moved]), s8(0.5, 0), "y"), np.int8)
    build.output(
        build.node("Gather", [scaled, build.constant("i", np.int64([3, 0]))], name="z"), F32
    )
    inputs = {"x": RNG.normal(0, 1, (2, 6)).astype(F32)}
    check_model(build.model(), inputs, literal_quanta=1, floats=0)


def test_scales_made_by_cast_and_mul_still_fold() -> None:
    """Double quantization: the scales themselves are codes times a scale."""

    def weights(build: Builder) -> str:
        small = build.constant("sq", np.asarray([3, 5, 7, 9], np.uint8))
        cast = build.node("Cast", [small], to=TensorProto.FLOAT)
        scale = build.node("Mul", [cast, build.constant("ss", F32(0.002))])
        names = [build.constant("w", CODES), scale, build.constant("wz", np.zeros(4, np.int8))]
        return build.node("DequantizeLinear", names, axis=0)

    check(model_of(weights))


@pytest.mark.parametrize(
    ("op_type", "before", "axis", "extra", "attrs"),
    [
        ("Transpose", (3, 4, 3, 3), 1, None, {"perm": [1, 0, 2, 3]}),
        ("Reshape", (4, 27), 0, [4, 3, 3, 3], {}),
        ("Squeeze", (1, 4, 3, 3, 3), 1, [0], {}),
        ("Squeeze", (4, 1, 3, 3, 3), -5, [1], {}),
        ("Unsqueeze", (4, 3, 9), 0, None, {}),
        ("Identity", (4, 3, 3, 3), -4, None, {}),
    ],
)
def test_movers_of_weights_remap_the_axis(
    op_type: str, before: tuple[int, ...], axis: int, extra: list[int] | None, attrs: dict[str, Any]
) -> None:
    def weights(build: Builder) -> str:
        codes = build.constant("w", RNG.integers(-128, 128, before).astype(np.int8))
        value = build.dequantize(codes, s8(SCALES, 0, axis=axis))
        if op_type == "Unsqueeze":
            wide = build.node("Unsqueeze", [value, build.constant("at", np.int64([0]))])
            return build.node("Reshape", [wide, build.constant("to", np.int64([4, 3, 3, 3]))])
        more = [] if extra is None else [build.constant("more", np.int64(extra))]
        return build.node(op_type, [value, *more], **attrs)

    graph = check(model_of(weights))
    assert {k.params.axis for k in graph.types.values() if k.shape == (4, 3, 3, 3)} == {0}


# -- scales and zero points -----------------------------------------------------------------------


def test_a_zero_point_through_identity_and_cast() -> None:
    """PyTorch's exporters make the zero point an int64 constant and cast it."""

    def x(build: Builder, value: str) -> str:
        scale = build.constant("s", F32(0.02))
        zero = build.node("Cast", [build.constant("z", np.int64(120))], to=TensorProto.UINT8)
        zero = build.node("Identity", [zero])
        codes = build.node("QuantizeLinear", [value, scale, zero])
        return build.node("DequantizeLinear", [codes, scale, zero])

    check(model_of(plain_weights, x=x))


def test_parameters_of_constant_subgraphs() -> None:
    def x(build: Builder, value: str) -> str:
        two = build.node("Constant", [], name="two", value_float=2.0)
        seven = build.node("Constant", [], name="seven", value_float=-7.0)
        power = build.node("Pow", [two, seven])
        scale = build.node("Div", [power, build.constant("k", F32(1.5))])
        shape = build.constant("shape", np.asarray([], np.int64))
        filled = numpy_helper.from_array(np.uint8([120]))
        zero = build.node("ConstantOfShape", [shape], value=filled)
        codes = build.node("QuantizeLinear", [value, scale, zero])
        return build.node("DequantizeLinear", [codes, scale, zero])

    def weights(build: Builder) -> str:
        parts = [build.constant(f"p{i}", SCALES[2 * i : 2 * i + 2]) for i in range(2)]
        column = build.node("Unsqueeze", [build.node("Concat", parts, axis=0),
                                          build.constant("at", np.int64([1]))])  # fmt: skip
        scale = build.node("Reshape", [column, build.constant("to", np.int64([-1]))])
        count = build.node("Shape", [scale])
        zero = build.node("Cast", [build.node("ConstantOfShape", [count])], to=TensorProto.INT8)
        return build.node("DequantizeLinear", [build.constant("w", CODES), scale, zero], axis=0)

    check(model_of(weights, x=x))


@pytest.mark.parametrize("overridable", [False, True])
def test_scales_that_are_quantized_themselves(overridable: bool) -> None:
    """AIMET's low power blocks: whole numbers for the blocks times a scale for the channel."""

    def weights(build: Builder) -> str:
        small = build.constant("sq", np.asarray([3, 5, 7, 9], np.uint8))
        names = [small, build.constant("ss", F32(0.002)), build.constant("sz", np.uint8(1))]
        if overridable:
            build.feed("ss", (), F32)
        scale = build.node("DequantizeLinear", names)
        scale = build.node("Reshape", [scale, build.constant("to", np.int64([4]))])
        names = [build.constant("w", CODES), scale, build.constant("wz", np.zeros(4, np.int8))]
        return build.node("DequantizeLinear", names, axis=0)

    model = model_of(weights)
    if overridable:
        nodes = intonnx.coverage(intonnx.import_model(model)).nodes
        assert "runtime-parameters" in {node.code for node in nodes}
        return
    graph = check(model)
    (params,) = [kind.params for kind in graph.types.values() if kind.shape == CODES.shape]
    np.testing.assert_array_equal(params.scale, np.asarray([2, 4, 6, 8], F32) * F32(0.002))


@pytest.mark.parametrize("axes", [(3, -2), (7, -9), (0, 1)])
def test_a_stray_axis_of_per_tensor_parameters(axes: tuple[int, int]) -> None:
    """PyTorch PT2E names an axis, even one that the tensor has not."""

    def x(build: Builder, value: str) -> str:
        names = [build.constant("s", F32(0.02)), build.constant("z", np.uint8(120))]
        codes = build.node("QuantizeLinear", [value, *names], axis=axes[0])
        return build.node("DequantizeLinear", [codes, *names], axis=axes[1])

    check(model_of(plain_weights, x=x))


def test_negative_axes() -> None:
    """NNCF counts axes from the end."""
    params = s8(SCALES, 0, axis=-4)
    check(model_of(lambda b: b.dequantize(b.quantize(b.constant("w", REAL), params), params)))


@pytest.mark.parametrize("shapes", [((1,), ()), ((), (1,)), ((1,), (1,))])
def test_one_element_or_none(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    def x(build: Builder, value: str) -> str:
        names = [build.constant("s", np.full(shapes[0], 0.02, F32)),
                 build.constant("z", np.full(shapes[1], 120, np.uint8))]  # fmt: skip
        codes = build.node("QuantizeLinear", [value, *names])
        return build.node("DequantizeLinear", [codes, *names])

    model = model_of(plain_weights, x=x)
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == 0
    # onnxruntime wants equal shapes: the same model with scalars.
    inputs = {"x": RNG.normal(0, 1, SHAPE).astype(F32)}
    wanted = run_onnxruntime(model_of(plain_weights), inputs, optimized=False)
    apart(intonnx.compile(graph).run(inputs), wanted, 1)


# -- biases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "zero", "codes"),
    [
        (np.full(1, 0.0002), np.int32(0), np.arange(4, dtype=np.int32)),
        (np.float64(0.0002 * (1 + 1e-6)), np.int32(0), np.arange(4, dtype=np.int32) * 90000),
        (np.full(1, 0.0002 * (1 - 1e-6)), None, np.arange(4, dtype=np.int32) * 90000),
        (np.float64(0.004), np.int8(3), np.asarray([1, -7, 100, -128], np.int8)),
    ],
    ids=["one_beside_none", "a_millionth_above", "a_millionth_below", "int8_of_its_own"],
)
def test_biases(scale: Any, zero: Any, codes: Array) -> None:
    """onnxruntime's [1] beside (); exporters that round the scale; AMD Quark's int8 bias."""

    def bias(build: Builder) -> str:
        names = [build.constant("b", codes), build.constant("bs", scale.astype(F32))]
        if zero is not None:
            names.append(build.constant("bz", zero))
        return build.node("DequantizeLinear", names)

    model = model_of(plain_weights, bias=bias)
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == 0
    inputs = {"x": RNG.normal(0, 1, SHAPE).astype(F32)}
    apart(intonnx.compile(graph).run(inputs), run_onnxruntime(model, inputs, optimized=False), 1)


# -- what follows -------------------------------------------------------------------------------


@pytest.mark.parametrize("folded", [False, True])
def test_bounds_of_clip_through_dequantizers(folded: bool) -> None:
    """AIMET and ESP-PPQ quantize the bounds too."""

    def after(build: Builder, value: str) -> str:
        bounds = []
        for name, code, real in (("low", 0, 0.0), ("high", 255, 6.0)):
            params = u8(6 / 255, 0)
            given = build.constant(name, np.uint8(code) if folded else F32(real))
            bounds.append(
                build.dequantize(given if folded else build.quantize(given, params), params)
            )
        return build.node("Clip", [value, *bounds])

    graph = check(model_of(plain_weights, after=after))
    assert graph.nodes[-1].op.name == "qnn.clip"


def test_codes_enter_and_leave() -> None:
    """tf2onnx, from int8 TensorFlow Lite models."""
    build = Builder(13)
    x = build.dequantize(build.feed("x", (2, 6), np.int8), s8(0.02, -128))
    w = build.dequantize(build.constant("w", CODES.reshape(6, 18)), s8(0.01, 0))
    build.output(build.quantize(build.node("MatMul", [x, w]), s8(0.03, 127), "y"), np.int8)
    check_model(build.model(), {"x": RNG.integers(-128, 128, (2, 6)).astype(np.int8)},
                literal_quanta=1)  # fmt: skip


def test_integer_images_through_cast_and_mul() -> None:
    """A model whose first operators scale u8 pixels."""
    build = Builder(17)
    x = build.node("Cast", [build.feed("x", SHAPE, np.uint8)], to=TensorProto.FLOAT)
    x = build.node("Mul", [x, build.constant("s", F32(1 / 255))])
    value = build.node("Conv", [x, plain_weights(build)])
    build.output(build.quantize(value, u8(0.05, 100), "y"), np.uint8)
    check_model(build.model(), {"x": RNG.integers(0, 256, SHAPE).astype(np.uint8)},
                literal_quanta=1)  # fmt: skip


def test_an_activation_that_reads_unquantized_sums_says_so() -> None:
    """NNCF puts no quantizer between a product and the activation behind it."""
    params = s8(SCALES, 0, axis=0)
    model = model_of(
        lambda b: b.dequantize(b.constant("w", CODES), params),
        after=lambda b, value: b.node("HardSwish", [value]),
    )
    floats = [n for n in intonnx.coverage(intonnx.import_model(model)).nodes if n.state == "float"]
    assert [(n.op, n.code) for n in floats] == [("HardSwish", "input-not-quantized")]
    assert "'conv' arrives with i32 codes" in floats[0].detail
