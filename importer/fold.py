"""Compute nodes whose inputs are all constant, with the onnx package's reference operators."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnx.version_converter

from intonnx.ir.errors import ModelFailure
from intonnx.ir.types import Array, TensorType, static_shape
from intonnx.protos import array_of
from intonnx.reference import evaluator

from .sparse import dense

if TYPE_CHECKING:
    from .node_view import NodeView

MAX_FOLDED_ELEMENTS = 1 << 24
"""A node that would make a larger constant is left for run time."""
_NEVER = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli",
          "Multinomial", "Dropout"}  # fmt: skip


def fold(
    view: NodeView,
    constants: Mapping[str, Array],
    types: Mapping[str, TensorType],
    opsets: Mapping[str, int],
) -> list[Array] | None:
    """The results of a node, or None when they are not known before run time.

    Overridable initializers are not in `constants`, so nothing that depends on one is folded.
    """
    node = view.proto
    if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
        return _constant(node)
    if node.op_type == "Shape" and node.domain in ("", "ai.onnx"):
        return _shape(view)
    if node.domain not in ("", "ai.onnx") or node.op_type in _NEVER or not node.input:
        return None
    if any(attribute.type in _GRAPHS for attribute in node.attribute):
        return None
    inputs = [name for name in node.input if name]
    if not all(name in constants for name in inputs) or _too_large(view, constants):
        return None
    return evaluate(node, {name: constants[name] for name in inputs}, opsets)


_MOVERS = {"Gather", "Slice", "Squeeze", "Unsqueeze", "Concat", "Reshape", "Identity", "Split"}
_UNKNOWN_SIZE = np.iinfo(np.int64).min
"""Stands for a size that is not known in a shape that is partly known."""


def move_sizes(
    view: NodeView,
    shapes: Mapping[str, Array],
    constants: Mapping[str, Array],
    opsets: Mapping[str, int],
) -> list[Array] | None:
    """The results of a node that only rearranges sizes, some of which may be unknown.

    `shapes` holds what is known of the values that are shapes of tensors: int64, with
    `_UNKNOWN_SIZE` for the rest. None for any other node.
    """
    node = view.proto
    if node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type == "Shape":
        shape = view.type(0).shape
        sizes = [size if isinstance(size, int) else _UNKNOWN_SIZE for size in shape or ()]
        part = slice(view.attribute("start", 0), view.attribute("end", None))
        return None if shape is None else [np.asarray(sizes, np.int64)[part]]
    inputs = [name for name in node.input if name]
    known = {**shapes, **{name: constants[name] for name in inputs if name in constants}}
    if node.op_type not in _MOVERS or not all(name in known for name in inputs):
        return None
    return evaluate(node, {name: known[name] for name in inputs}, opsets)


def are_known(sizes: Array) -> bool:
    """Whether every size of a shape is known."""
    return not np.any(sizes == _UNKNOWN_SIZE)


_GRAPHS = {onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS}


def evaluate(
    node: onnx.NodeProto, inputs: Mapping[str, Array], opsets: Mapping[str, int]
) -> list[Array] | None:
    """Run one node on constants, as its opset means it; None when the reference cannot."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = evaluator(_one_node(node, inputs, opsets)).run(None, dict(inputs))
    except Exception:  # an operator without a reference implementation stays in the graph
        return None
    if not all(isinstance(result, np.ndarray | np.generic) for result in found):
        return None
    results = iter(found)
    return [np.asarray(next(results) if name else 0) for name in node.output]


_OLDEST = 13


def _one_node(
    node: onnx.NodeProto, inputs: Mapping[str, Array], opsets: Mapping[str, int]
) -> onnx.ModelProto:
    """The node as a model: given a node alone, the reference takes the newest opset's meaning.

    Meanings from before opset 13 are converted: the reference knows few of them.
    """
    helper = onnx.helper
    graph = helper.make_graph(
        [node],
        "one_node",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in inputs.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in node.output if name],
    )
    ids = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    model = helper.make_model(graph, opset_imports=ids)
    version = opsets[""]
    if version >= _OLDEST or node.domain not in ("", "ai.onnx"):
        return model
    old, new = (onnx.defs.get_schema(node.op_type, v, "") for v in (version, _OLDEST))
    if old.since_version == new.since_version:
        return model
    if node.op_type == "Hardmax":
        raise NotImplementedError  # the converter passes it on unchanged
    return onnx.version_converter.convert_version(model, _OLDEST)


def _constant(node: onnx.NodeProto) -> list[Array] | None:
    if not node.attribute:
        raise ModelFailure("a Constant without a value")
    attribute = node.attribute[0]
    value = onnx.helper.get_attribute_value(attribute)
    if attribute.name == "value":
        return [array_of(value)]
    if attribute.name == "sparse_value":
        return [dense(value)]
    if attribute.name in ("value_float", "value_floats"):
        return [np.asarray(value, np.float32)]
    if attribute.name in ("value_int", "value_ints"):
        return [np.asarray(value, np.int64)]
    return None


def _shape(view: NodeView) -> list[Array] | None:
    shape = static_shape(view.type(0).shape)
    if shape is None:
        return None
    return [np.asarray(shape[view.attribute("start", 0) : view.attribute("end", None)], np.int64)]


def _too_large(view: NodeView, constants: Mapping[str, Array]) -> bool:
    if view.proto.op_type in ("ConstantOfShape", "Expand", "Tile"):
        sizes = constants[view.input(len(view.proto.input) - 1)]
        elements = float(np.prod(np.abs(sizes.astype(np.float64))))
        if view.proto.op_type == "Tile":
            elements *= constants[view.input(0)].size
        return elements > MAX_FOLDED_ELEMENTS
    return view.proto.op_type in ("Range", "Pad", "Resize", "OneHot")
