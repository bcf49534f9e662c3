"""Types and shapes of float values: the onnx package's inference, on the model and on one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from intonnx.ir.shapes import refined
from intonnx.ir.spatial import AutoPad, resolve_pads, window_count
from intonnx.ir.types import Array, DType, TensorType, static_shape
from intonnx.protos import proto_of, type_of

from .contrib_types import contrib_types
from .load import LoadedModel, is_typed

_SMALL = 1024
"""Constants up to this many elements are given to the inference of a node: shapes, axes, pads."""


def declared_types(proto: onnx.ModelProto) -> dict[str, TensorType]:
    """The types that the model declares or that the onnx package infers for it."""
    graph = _inferred(proto).graph
    values = [value for value in [*graph.value_info, *graph.output] if is_typed(value)]
    types = {value.name: type_of(value.type) for value in values}
    for value in filter(is_typed, proto.graph.output):
        types[value.name] = refined(types[value.name], type_of(value.type))
    return types


def _inferred(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the types that onnx infers.

    Some of its schemas count the windows of a pool with `ceil_mode` that start beyond the data,
    which no runtime makes, and tools write such sizes into models. Where that is so, nothing that
    the model says of inner values is trusted, and these pools get pads that say the same.
    """
    proto = _with_known_quantizers(proto)
    inferred = _inference(proto)
    pools = [i for i, node in enumerate(proto.graph.node) if _rounds_up(node)]
    trusted = proto
    for _ in pools:
        wrong = _miscounted(trusted, inferred, pools)
        if not wrong:
            break
        if trusted is proto:
            trusted = onnx.ModelProto()
            trusted.CopyFrom(proto)
            del trusted.graph.value_info[:]
            for value in trusted.graph.output:
                value.type.tensor_type.ClearField("shape")
        for index, pads in wrong.items():
            _pad_down(trusted.graph.node[index], pads)
        inferred = _inference(trusted)
    return inferred


def _with_known_quantizers(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the quantizers of com.microsoft as those of ai.onnx, which onnx knows.

    Both give the shape of their input, in the type of the zero point or in floats.
    """
    foreign = [
        i
        for i, node in enumerate(proto.graph.node)
        if node.domain == "com.microsoft" and node.op_type in ("QuantizeLinear", "DequantizeLinear")
    ]
    if not foreign:
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for index in foreign:
        copy.graph.node[index].domain = ""
    return copy


def _inference(proto: onnx.ModelProto) -> onnx.ModelProto:
    try:
        inferred: onnx.ModelProto = onnx.shape_inference.infer_shapes(proto, data_prop=True)
    except Exception:  # inference is a help, not a check: what it cannot do is left unknown
        return proto
    return inferred


def _rounds_up(node: onnx.NodeProto) -> bool:
    pool = node.op_type in ("MaxPool", "AveragePool", "LpPool") and not node.domain
    given = {attribute.name: attribute for attribute in node.attribute}
    return pool and "ceil_mode" in given and given["ceil_mode"].i == 1


def _miscounted(
    proto: onnx.ModelProto, inferred: onnx.ModelProto, pools: Sequence[int]
) -> dict[int, list[int]]:
    """Nodes whose inferred sizes are wrong, with the pads that give the right ones."""
    graph = inferred.graph
    values = {v.name: v.type for v in [*graph.input, *graph.value_info, *graph.output]}
    found: dict[int, list[int]] = {}
    for index in pools:
        node = proto.graph.node[index]
        before, after = values.get(node.input[0]), values.get(node.output[0])
        if before is None or after is None or not _rounds_up(node):
            continue
        pads = _wrong_pads(node, type_of(before), type_of(after))
        if pads is not None:
            found[index] = pads
    return found


def _wrong_pads(node: onnx.NodeProto, before: TensorType, after: TensorType) -> list[int] | None:
    """Pads with which `after` would be right without ceil_mode; None where it is, or may be."""
    sizes = static_shape((before.shape or ())[2:])
    if not sizes:
        return None
    n, counts = len(sizes), (after.shape or ())[2:]
    given = {a.name: list(a.ints) for a in node.attribute}
    named: dict[str, AutoPad] = {"SAME_UPPER": "SAME_UPPER", "SAME_LOWER": "SAME_LOWER",
                                 "VALID": "VALID"}  # fmt: skip
    texts = [a.s.decode(errors="replace") for a in node.attribute if a.name == "auto_pad"]
    auto_pad = named.get(texts[0] if texts else "", "NOTSET")
    kernel = given.get("kernel_shape", [])
    ones, pads = [1] * n, given.get("pads") or [0] * (2 * n)
    strides, dilations = given.get("strides") or ones, given.get("dilations") or ones
    lengths = {len(kernel), len(strides), len(dilations), len(counts)}
    if lengths != {n} or len(pads) != 2 * n or min(*strides, *kernel) <= 0:
        return None
    right = [
        window_count(sizes[i], kernel[i], strides[i], dilations[i], (pads[i], pads[n + i]),
                     auto_pad, ceil_mode=True)
        for i in range(n)
    ]  # fmt: skip
    if all(count == own for count, own in zip(counts, right, strict=True)):
        return None
    starts = resolve_pads(sizes, kernel, strides, dilations, pads, auto_pad)[:n]
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    ends = [
        max(0, (int(right[i]) - 1) * strides[i] + spans[i] - sizes[i] - starts[i]) for i in range(n)
    ]
    return [*starts, *ends]


def _pad_down(node: onnx.NodeProto, pads: Sequence[int]) -> None:
    kept = [a for a in node.attribute if a.name not in ("pads", "ceil_mode", "auto_pad")]
    del node.attribute[:]
    node.attribute.extend([*kept, onnx.helper.make_attribute("pads", pads)])


def infer_result_types(
    node: onnx.NodeProto,
    types: Mapping[str, TensorType],
    constants: Mapping[str, Array],
    model: LoadedModel,
) -> dict[str, TensorType]:
    """The result types of one node from the types of its inputs; empty where nothing tells them."""
    if known := contrib_types(node, types):
        return known
    version = model.opsets.get(node.domain if node.domain != "ai.onnx" else "")
    if version is None or not onnx.defs.has(node.op_type, node.domain):
        return {}
    names = [name for name in node.input if name]
    if any(types[name].dtype is DType.CONTAINER for name in names):
        return {}
    data = {
        name: numpy_helper.from_array(np.ascontiguousarray(constants[name]), name)
        for name in names
        if name in constants and constants[name].size <= _SMALL and constants[name].dtype != object
    }
    try:
        inferred = onnx.shape_inference.infer_node_outputs(
            onnx.defs.get_schema(node.op_type, version, node.domain),
            node,
            {name: proto_of(types[name]) for name in names},
            data,
            opset_imports=[onnx.helper.make_opsetid(d, v) for d, v in model.opsets.items()],
        )
    except Exception:  # as above
        return {}
    found = {name: type_of(kind) for name, kind in inferred.items()}
    if _rounds_up(node) and node.output[0] in found:
        pads = _wrong_pads(node, types[node.input[0]], found[node.output[0]])
        if pads is not None:
            exact = onnx.NodeProto()
            exact.CopyFrom(node)
            _pad_down(exact, pads)
            return infer_result_types(exact, types, constants, model)
    return found
