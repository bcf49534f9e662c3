"""Conv, Gemm and MatMul."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from support.models import Params

from .drawing import Draw, limits
from .patterns import SUMS, WIDE, Pattern, without_zero_point

X = (2, 4, 6, 6)
W = (5, 4, 3, 3)


def middle(d: Draw) -> Params:
    return d.params("x", at=1)


def bias(d: Draw, kind: str, x: Params, w: Params, count: int) -> str:
    """A bias of one of the kinds that tools write."""
    scale = np.float32(x.scale_array * w.scale_array)
    axis = 0 if scale.ndim else None
    if kind == "float":
        return d.reals(count)
    codes = d.rng.integers(-9000, 9000, count).astype(np.int32)
    params = Params(np.int32, scale, 0, axis)
    if kind == "omitted":
        params = Params(np.int32, scale, None, axis)
    elif kind == "other scale":
        params = Params(np.int32, scale * np.float32(1.7), 0, axis)
    elif kind == "zero point":
        params = Params(np.int32, scale, 400, axis)
    elif kind == "narrow":
        params, codes = Params(np.int8, d.near(0.05), 0), d.codes((count,), np.int8)
    return d.build.dequantize(d.build.constant("bias", codes), params)


def conv(
    d: Draw,
    x: tuple[int, ...] = X,
    w: tuple[int, ...] = W,
    *,
    op: str = "Conv",
    storage: npt.DTypeLike = np.int8,
    axis: int | None = None,
    zeros: bool = False,
    b: str = "",
    params: Params | None = None,
    **attributes: Any,
) -> str:
    """A convolution of an activation with quantized weights."""
    params = params or d.params("x")
    value = d.x(x, params=params)
    weight, w_params = d.held(w, storage, axis=axis, zeros=zeros)
    count = w[1] if op == "ConvTranspose" else w[0]
    operands = [value, weight, *([bias(d, b, params, w_params, count)] if b else [])]
    return d.op(op, *operands, **attributes)


def weights_quantized_in_the_graph(d: Draw) -> str:
    x = d.x(X)
    w = d.between(d.reals(*W, spread=0.7), Params(np.int8, d.near(0.02), 0))
    return d.op("Conv", x, w)


def then(op: str, at: int | None, d: Draw, **attributes: Any) -> None:
    d.finish(d.op(op, conv(d, axis=0, b="codes", **attributes)), at=at)


def clipped(d: Draw) -> None:
    value = conv(d, axis=0, b="codes")
    bounds = [d.constant(np.float32(v)) for v in (0, 6)]
    d.finish(d.op("Clip", value, *bounds), Params(d.storage, *clip_params(d)))


def clip_params(d: Draw) -> tuple[float, int]:
    """A range that reaches further than the clip, on both sides."""
    low, high = limits(d.storage)
    return d.near(12.0 / (high - low)), low + (high - low) // 4


def unquantized(d: Draw, make: Callable[[Draw], str]) -> None:
    d.leave(make(d))


def into_other_storage(d: Draw) -> None:
    other = np.int8 if np.dtype(d.storage) == np.uint8 else np.uint8
    d.finish(conv(d, axis=0, b="codes"), storage=other)


def batch_norm(d: Draw) -> str:
    value = conv(d, axis=0, b="codes")
    factors = [d.rng.uniform(0.5, 2.0, 5), d.rng.normal(0, 1, 5), d.rng.normal(0, 1, 5)]
    factors.append(d.rng.uniform(0.5, 2.0, 5))
    names = [d.constant(f.astype(np.float32)) for f in factors]
    return d.op("BatchNormalization", value, *names)


def residual(d: Draw) -> str:
    w, _ = d.held((4, 4, 3, 3), axis=0)
    x = d.x(X)
    made = d.between(d.op("Conv", x, w, pads=[1, 1, 1, 1]))
    return d.op("Relu", d.op("Add", made, x))


def shared(d: Draw) -> None:
    x = d.x(X)
    for _ in range(2):
        w, _ = d.held(W, axis=0)
        d.finish(d.op("Conv", x, w))
    d.finish(d.op("MaxPool", x, kernel_shape=[2, 2]))


def with_scales_of_shape_one(d: Draw) -> None:
    params = d.params("x")
    one = Params(params.dtype, [params.scale], [params.zero_point])
    d.finish(conv(d, params=one))


def without_zero_points(d: Draw) -> None:
    value = conv(d, params=without_zero_point(d.params("x")))
    d.finish(value, without_zero_point(d.fitted(value, "y")))


def padded(d: Draw) -> str:
    x = d.op("Pad", d.x(X), d.ints(0, 0, 1, 1, 0, 0, 1, 2))
    w, _ = d.held(W, axis=0)
    return d.op("Conv", x, w)


def turned(d: Draw) -> str:
    return d.op("Transpose", conv(d, axis=0, b="codes"), perm=[0, 2, 3, 1])


def constants_as_nodes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Every initializer as a Constant node."""
    nodes = [helper.make_node("Constant", [], [t.name], value=t) for t in model.graph.initializer]
    nodes += list(model.graph.node)
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def in_float16(model: onnx.ModelProto) -> onnx.ModelProto:
    """Every float32 constant, input and output as float16."""
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            array = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    for value in [*model.graph.input, *model.graph.output]:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return model


# -- Gemm and MatMul ----------------------------------------------------------------------------


def gemm(
    d: Draw,
    a: tuple[int, ...] = (4, 12),
    b: tuple[int, ...] = (12, 7),
    *,
    storage: npt.DTypeLike = np.int8,
    axis: int | None = None,
    zeros: bool = False,
    c: str = "",
    **attributes: Any,
) -> str:
    """A Gemm with a C of some kind."""
    params = d.params("x")
    value = d.x(a, params=params)
    weight, w_params = d.held(b, storage, axis=axis, zeros=zeros)
    shapes = {"2-D": (4, 7), "scalar": (), "row": (7,), "column": (4, 1)}
    operands = [value, weight]
    if c in shapes:
        operands.append(d.reals(*shapes[c], spread=3.0))
    elif c:
        operands.append(bias(d, c, params, w_params, 7))
    return d.op("Gemm", *operands, **attributes)


def matmul(
    d: Draw,
    a: tuple[int, ...] = (4, 12),
    b: tuple[int, ...] = (12, 7),
    *,
    storage: npt.DTypeLike = np.int8,
    axis: int | None = None,
    zeros: bool = False,
) -> str:
    """An activation times constant weights."""
    value = d.x(a)
    weight, _ = d.held(b, storage, axis=axis, zeros=zeros)
    return d.op("MatMul", value, weight)


def two_activations(d: Draw) -> str:
    return d.op("MatMul", d.x((2, 3, 4, 6), "a"), d.x((2, 3, 6, 5), "b", factor=0.5))


def plus_bias(d: Draw) -> str:
    return d.op("Add", matmul(d, (2, 4, 12), axis=1), d.reals(7))


def through_transpose(d: Draw) -> str:
    x = d.x((4, 12))
    w, _ = d.held((7, 12), axis=0)
    return d.op("MatMul", x, d.op("Transpose", w, perm=[1, 0]))


def blocked_weights(d: Draw, storage: npt.DTypeLike) -> str:
    scales = d.constant(d.scales(3 * 7).reshape(3, 7))
    low, high = limits(storage)
    zeros = d.constant(d.rng.integers(low, high + 1, (3, 7)).astype(np.dtype(storage)))
    codes = d.constant(d.codes((12, 7), storage))
    return d.op("DequantizeLinear", codes, scales, zeros, axis=0, block_size=4)


def blocked(d: Draw, storage: npt.DTypeLike) -> str:
    x = d.x((4, 12))
    return d.op("MatMul", x, blocked_weights(d, storage))


def weight_only(d: Draw, storage: npt.DTypeLike | None) -> None:
    """The activation is float: whatever the case says of it, nothing quantizes it."""
    d.inputs["x"] = d.rng.normal(0, 2, (4, 12)).astype(np.float32)
    x = d.build.feed("x", (4, 12), np.float32)
    w = d.held((12, 7), axis=1)[0] if storage is None else blocked_weights(d, storage)
    d.leave(d.op("MatMul", x, w))


def _conv(name: str, kernel: str = "QLinearConv", /, **options: Any) -> Pattern:
    return Pattern(f"conv-{name}", partial(conv, **options), SUMS, kernel=kernel)


def _built(
    name: str, build: Callable[[Draw], str | None], kernel: str = "", **more: Any
) -> Pattern:
    return Pattern(name, build, SUMS, kernel=kernel, **more)


DEPTHWISE: dict[str, Any] = {"w": (4, 1, 3, 3), "group": 4, "axis": 0}
INT4, UINT4 = ml_dtypes.int4, ml_dtypes.uint4

CONVOLUTIONS: list[Pattern] = [
    _conv("per-tensor", b="codes"),
    _conv("per-channel", b="codes", axis=0),
    _conv("no-bias"),
    _conv("bias-without-zero-point", b="omitted", axis=0),
    _conv("1x1", w=(5, 4, 1, 1)),
    _conv("grouped", w=(6, 2, 3, 3), group=2, axis=0),
    _conv("depthwise", **DEPTHWISE),
    _conv("depth-multiplier", **{**DEPTHWISE, "w": (8, 1, 3, 3)}),
    _conv("strides-dilations", strides=[2, 1], dilations=[1, 2], pads=[1, 2, 0, 1]),
    _conv("1d", x=(2, 4, 9), w=(5, 4, 3), pads=[1, 1]),
    _conv("3d", x=(1, 2, 4, 4, 3), w=(3, 2, 2, 2, 2)),
    _conv("auto-pad", auto_pad="SAME_UPPER", strides=[2, 2]),
    _conv("u8-weights", storage=np.uint8, zeros=True),
    _conv("s8-weights-zero-point", zeros=True),
    _conv("per-channel-zero-points", "", axis=0, zeros=True),
    _conv("float-bias", b="float"),
    _conv("int4-weights", "", storage=INT4, axis=0),
    _conv("uint4-weights", "", storage=UINT4, zeros=True),
    _conv("int8-bias", b="narrow"),
    _conv("bias-of-other-scale", b="other scale", axis=0),
    _conv("bias-with-zero-point", b="zero point"),
    _built("conv-16-bit", partial(conv, b="codes", axis=0), storages=WIDE[2:]),
    _built("conv-weights-q-dq", weights_quantized_in_the_graph, "QLinearConv"),
    _built("conv-relu-redundant", partial(then, "Relu", 0), "QLinearConv"),
    _built("conv-relu-zero-in-the-middle", partial(then, "Relu", 1)),
    _built("conv-clip", clipped),
    _built("conv-no-output-quantizer", partial(unquantized, make=conv)),
    _built("conv-into-other-storage", into_other_storage),
    _built("conv-float16", conv, rewrite=in_float16),
    _built("conv-batch-norm", batch_norm, "QLinearConv"),
    _built("conv-add-relu", residual),
    _built("conv-shared-input", shared),
    _built("conv-scales-of-shape-1", with_scales_of_shape_one, "QLinearConv"),
    _built("conv-omitted-zero-points", without_zero_points, "QLinearConv"),
    _built("conv-com-microsoft", conv, "QLinearConv", qdq_domain="com.microsoft"),
    _built("conv-parameters-from-constant-nodes", conv, rewrite=constants_as_nodes),
    _built("conv-pad-before", padded),
    _built("conv-transpose-after", turned),
    _built("convtranspose", partial(conv, op="ConvTranspose", w=(4, 3, 3, 3), strides=[2, 2])),
    _built("convtranspose-per-channel", partial(conv, op="ConvTranspose", w=(4, 3, 3, 3), axis=1)),
]

PRODUCTS: list[Pattern] = [
    _built("gemm-trans-a", partial(gemm, a=(12, 4), transA=1, c="codes")),
    _built("gemm-trans-b", partial(gemm, b=(7, 12), transB=1, c="codes")),
    _built("gemm-per-channel", partial(gemm, axis=1, c="codes")),
    _built("gemm-no-c", gemm),
    _built("gemm-u8-weights", partial(gemm, storage=np.uint8, zeros=True, c="codes")),
    _built("gemm-float-c", partial(gemm, c="row")),
    _built("gemm-2d-c", partial(gemm, c="2-D")),
    _built("gemm-column-c", partial(gemm, c="column")),
    _built("gemm-scalar-c", partial(gemm, c="scalar")),
    _built("gemm-no-output-quantizer", partial(unquantized, make=gemm)),
    _built("gemm-alpha", partial(gemm, alpha=0.3)),
    _built("gemm-alpha-with-c", partial(gemm, alpha=0.3, c="codes")),
    _built("gemm-beta-with-c", partial(gemm, beta=0.7, c="row")),
    _built("gemm-alpha-and-beta", partial(gemm, alpha=1.5, beta=2.0, c="codes")),
    _built("matmul", matmul, "QLinearMatMul"),
    _built("matmul-per-column", partial(matmul, axis=1), "QLinearMatMul"),
    _built("matmul-u8-zero-point", partial(matmul, storage=np.uint8, zeros=True), "QLinearMatMul"),
    _built("matmul-batched", partial(matmul, a=(2, 3, 4, 12), b=(2, 1, 12, 5))),
    _built("matmul-3d", partial(matmul, a=(2, 4, 12)), "QLinearMatMul"),
    _built("matmul-two-activations", two_activations, "QLinearMatMul"),
    _built("matmul-no-output-quantizer", partial(unquantized, make=matmul)),
    _built("matmul-bias", plus_bias),
    _built("matmul-weight-through-transpose", through_transpose, "QLinearMatMul"),
    _built("matmul-16-bit", partial(matmul, axis=1), storages=WIDE[2:]),
    _built("matmul-16-bit-two-activations", two_activations, storages=WIDE[2:]),
    _built("matmul-int4-weights", partial(matmul, storage=INT4, axis=1)),
    _built("matmul-uint4-weights", partial(matmul, storage=UINT4, zeros=True)),
    _built("matmul-int2-weights", partial(matmul, storage=ml_dtypes.int2, axis=1), opset=25),
    _built("matmul-uint2-weights", partial(matmul, storage=ml_dtypes.uint2), opset=25),
    _built("matmul-blocked-int8", partial(blocked, storage=np.int8)),
    _built("matmul-blocked-int4", partial(blocked, storage=INT4)),
    _built("matmul-blocked-uint4", partial(blocked, storage=UINT4)),
    Pattern("matmul-weight-only", partial(weight_only, storage=None), storages=(np.uint8,),
            stays="input-not-quantized"),
    Pattern("matmul-weight-only-int4", partial(weight_only, storage=INT4), storages=(np.uint8,),
            stays="input-not-quantized"),
]  # fmt: skip

MATRIX = CONVOLUTIONS + PRODUCTS
