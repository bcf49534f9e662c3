"""Damage that leaves a well-formed model: what passes the onnx checker and reaches the rules."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import AttributeProto, helper, numpy_helper

from support.models import Array

from .mutations import FLOATS, INTEGERS, TEXTS

_OPERATORS = (
    "Add", "Mul", "Div", "Pow", "Min", "PRelu", "Conv", "ConvTranspose", "MatMul", "Gemm", "Relu",
    "Clip", "Sigmoid", "Softmax", "LayerNormalization", "BatchNormalization", "MaxPool", "Einsum",
    "AveragePool", "GlobalAveragePool", "LpPool", "Reshape", "Transpose", "Slice", "Split", "Pad",
    "Gather", "GatherElements", "GatherND", "ScatterND", "Concat", "Tile", "Expand", "Squeeze",
    "Unsqueeze", "Flatten", "DepthToSpace", "SpaceToDepth", "Resize", "ReduceMean", "ReduceMax",
    "ArgMax", "TopK", "CumSum", "Where", "Equal", "Cast", "Shape", "Size", "ConstantOfShape",
    "Range", "OneHot", "Identity", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear",
    "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger", "LSTM", "GRU", "GridSample",
    "QLinearAdd", "QLinearMul", "QGemm", "QLinearSoftmax", "QLinearConcat", "QAttention", "NoSuch",
    "Trilu", "EyeLike", "NonZero", "If", "Loop", "Scan", "Constant", "LRN", "InstanceNormalization",
    "QLinearAveragePool", "QLinearLeakyRelu", "QLinearWhere", "MatMulNBits", "MatMulIntegerToFloat",
)  # fmt: skip
_DTYPES: tuple[Any, ...] = (
    np.uint8, np.int8, np.uint16, np.int16, np.int32, np.int64, np.uint32, np.float32, np.float16,
    np.float64, np.bool_, ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.uint4,
    ml_dtypes.float8_e4m3fn,
)  # fmt: skip
_SHAPES: tuple[tuple[int, ...], ...] = (
    (), (0,), (1,), (2,), (3,), (4,), (1, 1), (0, 3), (2, 3), (1, 3, 1, 1), (2, 3, 4, 5),
    (4, 3, 1, 1), (3, 1, 1), (1,) * 9, (2, 0, 2),
)  # fmt: skip


def plausible_model(model: onnx.ModelProto, rng: Random) -> bytes:
    """A copy with one to four changes of that kind."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    ways: list[Callable[[onnx.GraphProto, Random], None]] = [
        _constant, _constant, _constant, _operand, _operand, _attribute, _attribute, _operator,
        _interface, _results,
    ]  # fmt: skip
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        rng.choice(ways)(copy.graph, rng)
    if rng.random() < 0.1:
        copy.opset_import[0].version = rng.choice((1, 7, 10, 11, 12, 13, 18, 19, 21, 23, 26))
    return copy.SerializeToString()


def wild_array(rng: Random) -> Array:
    """Any type, a small shape, unusual values."""
    dtype = np.dtype(rng.choice(_DTYPES))
    shape = rng.choice(_SHAPES)
    values: tuple[Any, ...] = FLOATS if dtype.kind == "f" else INTEGERS
    if rng.random() < 0.4:
        values = (0, 1, 2, -1, 3)
    count = int(np.prod(shape))
    with np.errstate(all="ignore"):
        filled = [rng.choice(values) for _ in range(count)]
        if dtype.kind in "iu" and dtype.itemsize <= 8 and dtype.isbuiltin == 1:
            info = np.iinfo(dtype)
            filled = [min(max(int(v), info.min), info.max) for v in filled]
        return (
            np.asarray(filled, np.float64 if dtype.kind not in "iu" else None)
            .astype(dtype)
            .reshape(shape)
        )


def _constant(graph: onnx.GraphProto, rng: Random) -> None:
    """Another content of the same shape and type, another shape, or another type."""
    if not graph.initializer:
        return
    tensor = rng.choice(graph.initializer)
    try:
        old = numpy_helper.to_array(tensor)
    except (TypeError, ValueError):
        return
    way = rng.randrange(4)
    if way == 0 or not old.size:
        new = wild_array(rng)
    elif way == 1 and old.dtype.kind in "fiu" and old.dtype.isbuiltin == 1:
        new = old.copy()
        wild: Any = rng.choice(FLOATS if old.dtype.kind == "f" else INTEGERS)
        if old.dtype.kind != "f":
            wild = min(max(wild, np.iinfo(old.dtype).min), np.iinfo(old.dtype).max)
        with np.errstate(all="ignore"):
            new[(...,) if rng.random() < 0.5 else tuple(rng.randrange(n) for n in old.shape)] = wild
    elif way == 2:
        new = old.reshape(rng.choice(((-1,), (1, *old.shape), (*old.shape, 1), old.shape[::-1])))
    else:
        with np.errstate(all="ignore"):
            new = old.astype(rng.choice(_DTYPES[:11]))
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(new).reshape(new.shape),
                                            tensor.name))  # fmt: skip


def _operand(graph: onnx.GraphProto, rng: Random) -> None:
    """A node reads another value, one more, or one less."""
    index = rng.randrange(len(graph.node)) if graph.node else -1
    if index < 0:
        return
    node = graph.node[index]
    known = [value.name for value in graph.input] + [t.name for t in graph.initializer]
    known += [name for before in graph.node[:index] for name in before.output]
    way = rng.randrange(6)
    if way == 0 or not node.input:
        node.input.append(rng.choice([*known, ""]))
    elif way == 1:
        del node.input[-1]
    elif way == 2:
        node.input[rng.randrange(len(node.input))] = ""
    else:
        node.input[rng.randrange(len(node.input))] = rng.choice(known or [""])


def _attribute(graph: onnx.GraphProto, rng: Random) -> None:
    """Another value of an attribute, often of the same kind; or none; or one more."""
    node = rng.choice(graph.node) if graph.node else onnx.NodeProto()
    if not node.attribute or rng.random() < 0.15:
        name = rng.choice(("axis", "axes", "block_size", "group", "pads", "perm", "saturate",
                           "strides", "dilations", "auto_pad", "keepdims", "to", "alpha",
                           "output_dtype", "transB", "ceil_mode", "mode"))  # fmt: skip
        value: Any = rng.choice((0, 1, -1, 2**40, 1.5, "SAME_UPPER", [1, 1], [0, -1, 2**62], []))
        node.attribute.append(helper.make_attribute(name, value, attr_type=_kind_of(value)))
        return
    attribute = rng.choice(node.attribute)
    if attribute.type == AttributeProto.INT:
        attribute.i = rng.choice((*INTEGERS, -2, 4, 5, 16))
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = rng.choice([f for f in FLOATS if abs(f) < 1e39 or f != f])
    elif attribute.type == AttributeProto.STRING:
        attribute.s = rng.choice((*TEXTS, "SAME_LOWER", "VALID", "linear", "reflect")).encode()
    elif attribute.type == AttributeProto.INTS and attribute.ints and rng.random() < 0.6:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice((*INTEGERS, -2, 4, 5))
    elif attribute.type == AttributeProto.INTS:
        lists: list[list[int]] = [[], list(attribute.ints) * 2, list(attribute.ints)[:-1], [0] * 9]
        del attribute.ints[:]
        attribute.ints.extend(rng.choice(lists))
    elif attribute.type == AttributeProto.GRAPH:
        rng.choice((_constant, _operand, _attribute, _operator, _interface))(attribute.g, rng)
    else:
        node.attribute.remove(attribute)


def _kind_of(value: Any) -> int | None:
    return AttributeProto.INTS if value == [] else None


def _operator(graph: onnx.GraphProto, rng: Random) -> None:
    """A node is another operator, of either domain."""
    if graph.node:
        node = rng.choice(graph.node)
        node.op_type = rng.choice(_OPERATORS)
        if rng.random() < 0.2 or node.op_type.startswith("Q"):
            node.domain = rng.choice(("", "com.microsoft"))


def _interface(graph: onnx.GraphProto, rng: Random) -> None:
    """An input, output or inner value has another type, shape or name."""
    values = [*graph.input, *graph.output, *graph.value_info]
    if not values:
        return
    value = rng.choice(values)
    tensor = value.type.tensor_type
    way = rng.randrange(5)
    if way == 0:
        tensor.elem_type = rng.randrange(1, 24)
    elif way == 1:
        tensor.ClearField("shape")
    elif way == 2:
        tensor.shape.dim.add().dim_value = rng.choice((0, 1, 3, 2**40))
    elif way == 3 and tensor.shape.dim:
        size = rng.choice(tensor.shape.dim)
        if rng.random() < 0.3:
            size.dim_param = rng.choice(TEXTS)
        else:
            size.dim_value = rng.choice((0, 1, 2, 5, -1, 2**31, 2**40, 2**62))
    elif tensor.shape.dim:
        del tensor.shape.dim[-1]


def _results(graph: onnx.GraphProto, rng: Random) -> None:
    """A node makes a value more or less, or an inner value leaves the graph, or a node is lost."""
    if not graph.node:
        return
    node = rng.choice(graph.node)
    way = rng.randrange(4)
    if way == 0:
        node.output.append(f"one_more{rng.randrange(99)}")
    elif way == 1 and node.output:
        graph.output.append(onnx.ValueInfoProto(name=node.output[0]))
    elif way == 2 and len(node.output) > 1:
        node.output[rng.randrange(len(node.output))] = ""
    elif node.input and node.output:  # lost: its readers read what it read
        source, lost = node.input[0], node.output[0]
        graph.node.remove(node)
        for other in graph.node:
            for index, name in enumerate(other.input):
                if name == lost:
                    other.input[index] = source
