"""Kept ONNX operators at another opset than the model's: what changed, and the conversion."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import helper, version_converter

from intonnx.ir.errors import ExportFailure
from intonnx.ir.graph import Graph, Node
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.protos import node_proto, proto_of
from intonnx.reference import signature

_NOT_CONVERTED = {"Hardmax"}
"""Operators that the onnx package passes on unchanged although they mean something else."""


def means_the_same(op: OnnxOp, opset: int) -> bool:
    """Whether an ai.onnx operator has the same inputs, attributes and defaults at two opsets."""
    if op.domain or op.version == opset or not onnx.defs.has(op.op_type):
        return True
    if not onnx.defs.has(op.op_type, max_inclusive_version=opset):
        return False
    old, new = (signature(op.op_type, version) for version in (op.version, opset))
    return old == new


def converted(
    graph: Graph, node: Node, opset: int, constants: Mapping[str, onnx.TensorProto] | None = None
) -> onnx.ModelProto:
    """A kept node at another opset, as a model of one or a few nodes.

    The node's operands are its inputs, `constants` among them also initializers; its results are
    its outputs. Values in between have names that mean nothing. Raises ExportFailure when the onnx
    package has no conversion.
    """
    op = node.op
    assert isinstance(op, OnnxOp)
    refusal = f"{op.title} of opset {op.version} cannot be written at opset {opset}"
    if not onnx.defs.has(op.op_type, max_inclusive_version=opset):
        raise ExportFailure(f"{refusal}: there it does not exist")
    if op.op_type in _NOT_CONVERTED:
        raise ExportFailure(f"{refusal}: the onnx package has no conversion")
    names = list(dict.fromkeys(name for name in node.operands if name))
    body = helper.make_graph(
        [node_proto(node)],
        "one_node",
        [helper.make_value_info(name, proto_of(graph.types[name])) for name in names],
        [
            helper.make_value_info(name, proto_of(graph.types[name]))
            for name in node.results
            if name
        ],
        [constants[name] for name in names if name in constants] if constants else [],
    )
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", op.version)])
    try:
        return version_converter.convert_version(model, opset)
    except Exception as error:  # the converter raises what C++ threw
        raise ExportFailure(f"{refusal}: {error}") from None
