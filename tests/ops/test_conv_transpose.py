"""qnn.conv1d_transpose, 2d and 3d against a plain model, onnxruntime, and the literal QDQ model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.errors import TypeFailure
from intonnx.ir.ops.conv_transpose import ConvTranspose2d
from intonnx.ir.types import DType, QuantParams, plain, quantized
from support import bigint, strategies
from support.models import Array, Builder, Fed, Held, Params, qdq_model, run_inputs, s8, s32, u8
from support.runtime import run_onnxruntime
from support.wings import apart, check_model, refusal_of

U8 = QuantParams(storage=DType.U8, scale=0.5, zero_point=3)
I8 = QuantParams(storage=DType.I8, scale=0.25, zero_point=0)
RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Case:
    """x [N, C, *D], w [C, O / group, *K], bias [O] or None, and the attributes of ONNX."""

    x: Array
    x_params: Params
    w: Array
    w_params: Params
    bias: Array | None
    out: Params
    attrs: dict[str, Any]

    @property
    def scale(self) -> Array:
        """The scale of the accumulator, one for each channel when the weights are per axis."""
        product = self.x_params.scale_array * self.w_params.scale_array
        return np.tile(product, self.attrs["group"]) if product.ndim else product

    def model(self, *, quantized_input: bool = True, opset: int = 21) -> onnx.ModelProto:
        """DQ -> ConvTranspose -> Q, the bias an int32 constant with the accumulator's scale."""
        axis = 0 if self.scale.ndim else None
        bias = None if self.bias is None else Held(self.bias, s32(self.scale, 0, axis))
        x = Fed("x", self.x.shape, self.x_params, quantized=quantized_input)
        inputs = [x, Held(self.w, self.w_params), bias]
        return qdq_model("ConvTranspose", inputs, out=self.out, attrs=self.attrs, opset=opset)

    def sums(self) -> Array:
        """The accumulator in Python integers."""
        zeros = self.w_params.zero_array
        sums = transposed(
            self.x.astype(object) - int(self.x_params.zero_array),
            self.w.astype(object) - bigint.along(zeros, 1, self.w.ndim).astype(object),
            self.bias,
            self.attrs,
        )
        return sums.astype(np.int64)

    def expected(self) -> Array:
        """The codes: the accumulator times one float32 multiplier."""
        acc = self.sums()
        k = bigint.along(self.scale / self.out.scale_array, 1, acc.ndim)
        return bigint.requantize(acc, k, self.out.zero_array)


def transposed(x: Array, w: Array, bias: Array | None, attrs: dict[str, Any]) -> Array:
    """ConvTranspose of whole numbers as ONNX defines it, one product after the other."""
    n, groups = x.ndim - 2, attrs["group"]
    pads, strides, dilations = attrs["pads"], attrs["strides"], attrs["dilations"]
    sizes = [
        (x.shape[2 + i] - 1) * strides[i] + (w.shape[2 + i] - 1) * dilations[i] + 1
        + attrs["output_padding"][i] - pads[i] - pads[n + i]
        for i in range(n)
    ]  # fmt: skip
    inputs, outputs = x.shape[1] // groups, w.shape[1]
    result = np.zeros((x.shape[0], outputs * groups, *sizes), object)
    for at in np.ndindex(*x.shape[2:]):
        for tap in np.ndindex(*w.shape[2:]):
            to = tuple(at[i] * strides[i] + tap[i] * dilations[i] - pads[i] for i in range(n))
            if all(0 <= p < size for p, size in zip(to, sizes, strict=True)):
                for o in range(outputs * groups):
                    c = slice(o // outputs * inputs, (o // outputs + 1) * inputs)
                    result[(slice(None), o, *to)] += x[(slice(None), c, *at)].dot(
                        w[(c, o % outputs, *tap)]
                    )
    if bias is not None:
        result += bias.astype(object).reshape(-1, *[1] * n)
    return result


@st.composite
def cases(draw: st.DrawFn, *, per_channel: bool | None = None) -> Case:
    """Transposed convolutions of rank 1 to 3 with everything that moves cells."""
    rank, storage = draw(st.integers(1, 3)), draw(strategies.storages())
    weights = draw(strategies.storages())
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    inputs, outputs = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    kernel = [draw(st.integers(1, 3)) for _ in range(rank)]
    strides = [draw(st.integers(1, 3)) for _ in range(rank)]
    dilations = [draw(st.integers(1, 2)) for _ in range(rank)]
    # onnxruntime takes less than a stride, though ONNX has dilations above it.
    more = [draw(st.integers(0, stride - 1)) for stride in strides]
    size = [draw(st.integers(1, 4)) for _ in range(rank)]
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    full = [(n - 1) * s + k + m for n, s, k, m in zip(size, strides, spans, more, strict=True)]
    before = [draw(st.integers(0, min(3, n - 1))) for n in full]
    after = [draw(st.integers(0, min(3, n - 1 - b))) for n, b in zip(full, before, strict=True)]
    first, second, third = draw(strategies.scale_ratios(3, 1e-2, 1.0))
    w_params = Params(weights, second, draw(strategies.zero_points(weights)))
    if draw(st.booleans()) if per_channel is None else per_channel:
        w_params = draw(strategies.axis_params(outputs, 1, weights, symmetric=draw(st.booleans())))
    bias = None
    if draw(st.booleans()):
        seed = np.random.default_rng(draw(st.integers(0, 99)))
        bias = seed.integers(-3000, 3000, outputs * groups).astype(np.int32)
    return Case(
        draw(strategies.codes(storage, (draw(st.integers(1, 2)), inputs * groups, *size))),
        Params(storage, first, draw(strategies.zero_points(storage))),
        draw(strategies.codes(weights, (inputs * groups, outputs, *kernel))),
        w_params,
        bias,
        Params(storage, third * 8, draw(strategies.zero_points(storage))),
        {"group": groups, "strides": strides, "dilations": dilations, "output_padding": more,
         "pads": [*before, *after]},
    )  # fmt: skip


# -- constraints ----------------------------------------------------------------------------------


def infer(x: Any = None, w: Any = None, bias: Any = None, **changes: Any) -> Any:
    fields: dict[str, Any] = {
        "strides": (2, 2), "pads": (0, 0, 0, 0), "dilations": (1, 1), "output_padding": (0, 0),
    }  # fmt: skip
    x = x or quantized(U8, ["N", 4, 5, "W"])
    w = w or quantized(I8, [4, 3, 3, 2])
    return ConvTranspose2d(**{**fields, **changes}).infer([x, w, bias])[0]


def test_the_type_of_the_result() -> None:
    assert str(infer().shape) == "('N', 3, 11, '?')"
    assert infer(groups=2).shape[1] == 6
    assert infer(strides=(1, 1), pads=(0, 1, 0, 0)).shape == ("N", 3, 7, "W")
    per_axis = QuantParams(storage=DType.I8, scale=[1, 2, 3], zero_point=[0, 0, 0], axis=1)
    kind = infer(w=quantized(per_axis, [4, 3, 3, 2]), groups=2)
    assert kind.params.scale.tolist() == [0.5, 1, 1.5] * 2


@pytest.mark.parametrize(
    ("constraint", "changes"),
    [
        ("C1", {"x": quantized(U8, [1, 4, 5])}),
        ("C1", {"strides": (1, 0)}),
        ("C1", {"pads": (0, 0)}),
        ("C1", {"pads": (-1, 0, 0, 0)}),
        ("C1", {"output_padding": (0, -1)}),
        ("C1", {"w": quantized(I8, [4, 3, "K", 2])}),
        ("C2", {"w": quantized(I8, [3, 3, 3, 2])}),
        ("C2", {"groups": 3}),
        ("C2", {"pads": (12, 0, 0, 0)}),
        ("C3", {"x": plain(DType.U8, [1, 4, 5, 5])}),
        ("C3", {"w": plain(DType.I8, [4, 3, 3, 2])}),
        ("C4", {"x": quantized(QuantParams(storage="u8", scale=3e38, zero_point=0), [1, 4, 5, 5]),
                "w": quantized(QuantParams(storage="i8", scale=9, zero_point=0), [4, 3, 3, 2])}),
        ("C5", {"bias": plain(DType.I32, [4])}),
        ("C5", {"bias": plain(DType.I64, [3])}),
    ],
)  # fmt: skip
def test_constraints(constraint: str, changes: dict[str, Any]) -> None:
    with pytest.raises(TypeFailure) as failure:
        infer(**changes)
    assert failure.value.constraint == constraint


def test_c3_scales_along_the_input_channels_need_groups_of_one() -> None:
    per_axis = QuantParams(storage=DType.I8, scale=[1, 2, 3, 4], zero_point=[0] * 4, axis=0)
    w = quantized(per_axis, [4, 2, 3, 2])
    assert infer(w=w, groups=4).params.scale.tolist() == [0.5, 0.5, 1, 1, 1.5, 1.5, 2, 2]
    with pytest.raises(TypeFailure, match="C3"):
        infer(w=w, groups=2)


# -- values ---------------------------------------------------------------------------------------


@settings(max_examples=70)
@given(cases(), st.booleans())
def test_dq_conv_transpose_q_is_exact_in_every_wing(case: Case, fed_codes: bool) -> None:
    model = case.model(quantized_input=fed_codes)
    inputs = {"x": case.x} if fed_codes else run_inputs(model)
    zeros = bigint.along(case.w_params.zero_array, 1, case.w.ndim).astype(int)
    # 8-bit kernels take one zero point for all channels: what has no room stays a float operator.
    integer = bool(np.ptp(case.w - zeros) <= 255)
    quanta = 0 if integer else 1
    graph = check_model(model, inputs, quanta=1, literal_quanta=1, export_quanta=quanta)
    if fed_codes:
        np.testing.assert_array_equal(intonnx.compile(graph).run(inputs)["y"], case.expected())
    operators = {node.op_type for node in intonnx.to_onnx(graph).graph.node}
    assert ("QLinearConv" in operators) == integer


@settings(max_examples=25)
@given(cases())
def test_the_accumulator_alone_is_exact(case: Case) -> None:
    """Two quantizers and a float reader: the sums themselves are needed."""
    build = Builder()
    x = build.operand(Fed("x", case.x.shape, case.x_params, quantized=True), 0)
    w = build.operand(Held(case.w, case.w_params), 1)
    axis = 0 if case.scale.ndim else None
    bias = None if case.bias is None else Held(case.bias, s32(case.scale, 0, axis))
    inputs = [x, w, build.operand(bias, 2)]
    real = build.node("ConvTranspose", inputs, name="real", **case.attrs)
    build.output(build.quantize(real, case.out, "y"), case.out.dtype)
    build.output(build.quantize(real, u8(case.out.scale, 99), "z"), np.uint8)
    build.output(real, np.float32)
    model = build.model()
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == 0
    result = intonnx.compile(graph).run({"x": case.x})
    wanted = run_onnxruntime(model, {"x": case.x}, optimized=False)
    found = run_onnxruntime(intonnx.to_onnx(graph), {"x": case.x}, optimized=False)
    scale = bigint.along(case.scale, 1, case.x.ndim)
    np.testing.assert_array_equal(result["real"], case.sums().astype(np.float32) * scale)
    apart(found, result, 0)
    apart({name: result[name] for name in "yz"}, {name: wanted[name] for name in "yz"}, 1)


@pytest.mark.parametrize("opset", [10, 11, 13, 19, 22])
def test_every_opset(opset: int) -> None:
    x = Fed("x", (1, 4, 5, 6), u8(0.02, 100))
    w = RNG.integers(-128, 128, (4, 3, 3, 3))
    attrs = {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}
    model = qdq_model(
        "ConvTranspose", [x, Held(w, s8(0.01))], out=u8(0.05, 128), attrs=attrs, opset=opset
    )
    check_model(model, run_inputs(model), literal_quanta=1)


@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("target", [None, [9, 7], [6, 10]])
@pytest.mark.parametrize("kernel", [(3, 4), (1, 3)])
def test_auto_pad_and_output_shape(
    auto_pad: str, target: list[int] | None, kernel: tuple[int, int]
) -> None:
    if target == [9, 7] and kernel[0] == 1:
        target = [8, 7]
    x = Fed("x", (1, 2, 4, 4), s8(0.02, -7), quantized=True)
    w = Held(RNG.integers(0, 256, (2, 3, *kernel)), u8(0.01, 120))
    attrs: dict[str, Any] = {"strides": [2, 3], "auto_pad": auto_pad}
    if target is not None:
        attrs["output_shape"] = target
    model = qdq_model("ConvTranspose", [x, w], out=s8(0.04, 3), attrs=attrs)
    check_model(model, run_inputs(model), literal_quanta=1)


@pytest.mark.parametrize("shape", [("N", 2, "H", "W"), (2, 2, 4, 5)])
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "NOTSET"])
def test_sizes_that_are_known_at_run_time_only(shape: tuple[int | str, ...], auto_pad: str) -> None:
    x = Fed("x", shape, u8(0.02, 7), quantized=True)
    w = Held(RNG.integers(-128, 128, (2, 3, 3, 3)), s8([0.01, 0.02, 0.03], axis=1))
    attrs = {"strides": [2, 2], "auto_pad": auto_pad}
    model = qdq_model("ConvTranspose", [x, w], out=u8(0.04, 3), attrs=attrs)
    codes = RNG.integers(0, 256, (2, 2, 4, 5)).astype(np.uint8)
    # Without sizes the export is a float ConvTranspose.
    quanta = 0 if shape[0] == 2 else 1
    check_model(model, {"x": codes}, literal_quanta=1, export_quanta=quanta)


@pytest.mark.parametrize("dtype", [np.uint16, np.int16, np.uint8])
@pytest.mark.parametrize("out", [u8(0.3, 3), Params(np.int16, 0.002, 5)])
def test_16_bit_and_mixed_codes(dtype: type, out: Params) -> None:
    scale = 0.02 if dtype is np.uint8 else 1e-4
    x = Fed("x", (2, 3, 5, 4), Params(dtype, scale, 7), quantized=True)
    w = Held(RNG.integers(-128, 128, (3, 2, 3, 3)), s8(0.01))
    model = qdq_model("ConvTranspose", [x, w], out=out, attrs={"strides": [2, 1]})
    check_model(model, run_inputs(model), literal_quanta=1, export_quanta=1)


def test_sums_beyond_int32() -> None:
    x = Fed("x", (1, 64, 3), Params(np.uint16, 1e-4), quantized=True)
    w = Held(np.full((64, 2, 3), 32767), Params(np.int16, 1e-4))
    model = qdq_model("ConvTranspose", [x, w], out=Params(np.uint16, 30.0), attrs={})
    graph = intonnx.import_model(model)
    codes = np.full((1, 64, 3), 65535, np.uint16)
    wanted = run_onnxruntime(model, {"x": codes}, optimized=False)
    apart(intonnx.compile(graph).run({"x": codes}), wanted, 1)


@pytest.mark.parametrize("bias", [s32(0.0006), s32(0.0002, 40), s8(0.01), None])
def test_biases_at_other_scales(bias: Params | None) -> None:
    x = Fed("x", (1, 2, 4, 4), u8(0.02, 7), quantized=True)
    w = Held(RNG.integers(-128, 128, (2, 3, 2, 2)), s8([0.01, 0.02, 0.005], axis=1))
    codes = np.asarray([100, -90, 17])
    value = Held(codes, bias) if bias else Held(np.asarray([0.3, -1.5, 0.7], np.float32))
    by_group = Held(np.asarray([0.3, -1, 2, 0.1, 0, 5], np.float32))
    for group, constant in ((1, value), (2, by_group)):
        model = qdq_model(
            "ConvTranspose", [x, w, constant], out=u8(0.06, 100), attrs={"group": group}
        )
        check_model(model, run_inputs(model), literal_quanta=1)


@pytest.mark.parametrize("group", [1, 2])
def test_a_bias_finer_than_the_sums_is_added_behind_them(group: int) -> None:
    few = np.zeros((2, 3, 2, 2))
    few[0, :, 1, 0] = 1
    bias = Held(np.linspace(-1, 2, 3 * group).astype(np.float32))
    operands = [Fed("x", (1, 2, 4, 4), u8(0.02, 9)), Held(few, s8(50.0)), bias]
    model = qdq_model("ConvTranspose", operands, out=u8(0.02, 120), attrs={"group": group})
    codes = np.random.default_rng(1).integers(8, 11, (1, 2, 4, 4))
    inputs = {"x": ((codes - 9) * 0.02).astype(np.float32)}
    graph = check_model(model, inputs, literal_quanta=1)
    assert [node.op.name for node in graph.nodes].count("qnn.add") == 1


def test_an_added_constant_is_the_bias() -> None:
    build = Builder()
    x = build.operand(Fed("x", (1, 2, 4, 4), u8(0.02, 7)), 0)
    w = build.operand(Held(RNG.integers(-128, 128, (2, 3, 2, 2)), s8(0.01)), 1)
    real = build.node("ConvTranspose", [x, w], strides=[2, 2])
    addend = build.constant("b", np.asarray([1, -1, 0.5], np.float32).reshape(3, 1, 1))
    build.output(build.quantize(build.node("Add", [real, addend]), u8(0.05, 128), "y"), np.uint8)
    model = build.model()
    graph = check_model(model, run_inputs(model), literal_quanta=1)
    assert [node.op.name for node in graph.nodes].count("qnn.conv2d_transpose") == 1
    assert not any(node.op.name == "qnn.add" for node in graph.nodes)


def test_depthwise_weights_with_a_scale_for_each_input_channel() -> None:
    x = Fed("x", (1, 3, 4, 4), s8(0.02, 7), quantized=True)
    w = Held(RNG.integers(-128, 128, (3, 2, 4, 4)), s8([0.01, 0.03, 0.002], [0, 3, -9], axis=0))
    attrs = {"group": 3, "strides": [2, 2], "pads": [1, 1, 1, 1]}
    model = qdq_model("ConvTranspose", [x, w], out=s8(0.05, 3), attrs=attrs)
    # No kernel exists, so the export computes in floats, and may round ties the other way.
    check_model(model, run_inputs(model), literal_quanta=1, export_quanta=1)


# -- refusals -------------------------------------------------------------------------------------


def refused(w: Held | Fed, x: Fed | None = None, **attrs: Any) -> str:
    x = x or Fed("x", (1, 2, 4, 4), u8(0.02, 7))
    model = qdq_model("ConvTranspose", [x, w], out=u8(0.1), attrs=attrs)
    return refusal_of(model, "ConvTranspose")[0]


def test_refusals() -> None:
    codes = RNG.integers(-128, 128, (2, 2, 3, 3))
    assert refused(Held(codes.astype(np.float32))) == "input-not-quantized"
    assert refused(Held(codes, s8(0.1)), Fed("x", (1, 2, 4, 4))) == "input-not-quantized"
    # Along the input channels, which the products are added over; O = I does not matter.
    assert refused(Held(codes, s8([0.1, 0.2], axis=0))) == "per-axis-input"
    assert refused(Held(codes, s8([0.1] * 3, axis=2))) == "per-axis-input"
    x = Fed("x", (1, 2, "H", "W"), u8(0.02, 7))
    assert refused(Held(codes, s8(0.1)), x, output_shape=[4, 4]) == "unsupported-attribute"
    both = {"auto_pad": "SAME_UPPER", "output_padding": [1, 1], "strides": [2, 2]}
    assert refused(Held(codes, s8(0.1)), **both) == "unsupported-attribute"
