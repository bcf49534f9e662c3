"""Operators that the IR keeps as ONNX has them: written verbatim."""

from __future__ import annotations

import onnx
from onnx import helper, version_converter

from intonnx.ir.errors import ExportFailure
from intonnx.ir.graph import Node
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.protos import node_proto, proto_of

from .emitter import Emitter
from .opset import means_the_same
from .registry import emitters


@emitters.register(OnnxOp)
def onnx_op(op: OnnxOp, node: Node, out: Emitter) -> None:
    """As it was; converted by the onnx package when its meaning changed between the opsets."""
    for name in node.operands:
        if name:
            out.operand(name)
    out.domains.add(op.domain)
    proto = node_proto(node)
    if node.sources:
        proto.name = node.sources[0].name
    if means_the_same(op, out.opset):
        out.nodes.append(proto)
    else:
        out.nodes.extend(_converted(op, node, proto, out))


def _converted(op: OnnxOp, node: Node, proto: onnx.NodeProto, out: Emitter) -> list[onnx.NodeProto]:
    names = dict.fromkeys(name for name in node.operands if name)
    graph = helper.make_graph(
        [proto],
        "one_node",
        [helper.make_value_info(name, proto_of(out.type(name))) for name in names],
        [helper.make_value_info(name, proto_of(out.type(name))) for name in node.results if name],
        [out.initializers[name] for name in names if name in out.initializers],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", op.version)])
    try:
        converted = version_converter.convert_version(model, out.opset)
    except Exception as error:  # the converter raises what C++ threw
        raise ExportFailure(
            f"{op.title} of opset {op.version} cannot be written at opset {out.opset}: {error}"
        ) from None
    for tensor in converted.graph.initializer:
        if tensor.name not in names:
            tensor_name = out.fresh(f"{node.results[0]}.{tensor.name}")
            for other in converted.graph.node:
                other.input[:] = [tensor_name if i == tensor.name else i for i in other.input]
            tensor.name = tensor_name
            out.initializers[tensor_name] = tensor
    return list(converted.graph.node)
