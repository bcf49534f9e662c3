"""Operators that the IR keeps as ONNX has them: written verbatim."""

from __future__ import annotations

import onnx
from onnx import helper

from intonnx.ir.errors import ExportFailure
from intonnx.ir.graph import Node, bodies_of
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.quantize import Dequantize
from intonnx.lowering.opsets import converted, means_the_same
from intonnx.protos import node_proto

from ._body import body_proto
from ._weight_only import matmul_nbits
from .emitter import CONTRIB, Emitter
from .registry import emitters


@emitters.register(OnnxOp)
def onnx_op(op: OnnxOp, node: Node, out: Emitter) -> None:
    """As it was; converted by the onnx package when its meaning changed between the opsets.

    A product with weights in blocks is written with their codes where a kernel reads them. For a
    runtime with operators of ai.onnx only those of com.microsoft are refused; others are the user's
    own, and so is the runtime.
    """
    if matmul_nbits(node, out):
        return
    if op.domain == CONTRIB and out.runtime == "standard":
        raise ExportFailure(
            f"{op.title.removeprefix('onnx.')} has no form in operators of ai.onnx: export it for "
            "onnxruntime",
            node=node.label,
        )
    for name in node.operands:
        if name:
            out.operand(name)
    out.domains.add(op.domain)
    bodies = bodies_of(op)
    # If, Loop and Scan have kept their meaning; what is in the bodies is written on its own.
    if bodies or means_the_same(op, out.opset):
        proto = node_proto(node)
        captured = [out.operand(name) for name in node.operands[len(proto.input) :]]
        for name, body in bodies.items():
            attribute = helper.make_attribute(name, body_proto(body, captured, out))
            proto.attribute.append(attribute)
        if node.sources:
            proto.name = out.node_name(node.sources[0].name, proto)
        if op.op_type == "MatMul" and not op.domain:
            _keep_weights_real(proto, node, out)
        out.nodes.append(proto)
        return
    _write(converted(out.graph, node, out.opset, out.initializers).graph, node, out)


def _keep_weights_real(proto: onnx.NodeProto, node: Node, out: Emitter) -> None:
    """Keep a product with dequantized weights apart from these.

    onnxruntime would quantize its activations, which the model does not do.
    """
    name = node.operands[1]
    maker = out.graph.producers.get(name)
    if maker is not None and isinstance(maker.op, Dequantize):
        proto.input[1] = out.apart(name, name)


def _write(body: onnx.GraphProto, node: Node, out: Emitter) -> None:
    """The nodes and new constants of a converted node, values in between under fresh names."""
    kept = {*node.operands, *node.results}
    names: dict[str, str] = {}

    def renamed(name: str) -> str:
        if name in kept:
            return name
        if name not in names:
            names[name] = out.fresh(f"{node.results[0]}.{name}")
        return names[name]

    for tensor in body.initializer:
        if tensor.name not in kept:
            tensor.name = renamed(tensor.name)
            out.initializers[tensor.name] = tensor
    for proto in body.node:
        proto.input[:] = [renamed(name) for name in proto.input]
        proto.output[:] = [renamed(name) for name in proto.output]
        out.nodes.append(proto)
