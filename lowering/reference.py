"""Run operators that stayed ONNX with the onnx package's own reference implementation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from intonnx.ir.errors import CompileFailure, IntonnxError, RunFailure
from intonnx.ir.graph import Graph, Node
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.types import Array, DType, TensorType
from intonnx.protos import node_proto, proto_of
from intonnx.reference import evaluator

from .contrib_ops import CONTRIB_OPS
from .integer.kernel import Kernel
from .opsets import converted, means_the_same
from .reference_ops import REFERENCE_OPS

_KNOWN = [*REFERENCE_OPS, *CONTRIB_OPS]

_OLDEST = 13
_ABSENT: Array = np.zeros(())
"""Stands for a result that nothing asks for."""


def reference_kernel(graph: Graph, node: Node) -> Kernel:
    """A kernel that hands the node to the reference evaluator.

    Raises CompileFailure when the onnx package has no implementation of the operator; at run time
    RunFailure when it fails.
    """
    op = node.op
    assert isinstance(op, OnnxOp)
    try:
        reference = _evaluator(graph, node, op)
    except IntonnxError:
        raise
    except Exception as error:  # the evaluator raises many kinds, for unknown operators too
        raise CompileFailure(
            f"the onnx package cannot run {op.title}: {_first_line(error)}", node=node.label
        ) from None
    kinds = [graph.types[name] if name else None for name in node.results]

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        given = zip(node.operands, operands, strict=True)
        feeds = {name: _typed(x, graph.types[name]) for name, x in given if name}
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                results = reference.run(None, feeds)
        except Exception as error:
            raise RunFailure(
                f"the onnx package cannot run {op.title}: {_first_line(error)}", node=node.label
            ) from None
        made = iter(results)
        return tuple(_ABSENT if kind is None else _held(next(made), kind) for kind in kinds)

    return run


def _typed(operand: Any, kind: TensorType) -> Any:
    """The operand as the reference operators know its type."""
    if not kind.dtype.is_integer or not kind.dtype.ml_name:
        return operand
    import ml_dtypes

    return operand.astype(getattr(ml_dtypes, kind.dtype.ml_name))


def _held(result: Any, kind: TensorType) -> Any:
    """The result as the graph holds it: types under 8 bits in a byte an element."""
    if kind.dtype is DType.CONTAINER:
        return result
    array = np.asarray(result)
    narrow = kind.dtype.is_integer and array.dtype.name == kind.dtype.ml_name
    return array.astype(kind.dtype.numpy) if narrow else array


def _value(graph: Graph, name: str) -> onnx.ValueInfoProto:
    return onnx.ValueInfoProto(name=name, type=proto_of(graph.types[name]))


def _evaluator(graph: Graph, node: Node, op: OnnxOp) -> ReferenceEvaluator:
    # The reference operators know few meanings from before this opset.
    if op.version < _OLDEST and not means_the_same(op, _OLDEST):
        return evaluator(converted(graph, node, _OLDEST), _KNOWN)
    # Given a node alone, the evaluator takes the newest opset's meaning.
    opsets = {**graph.metadata.get("opsets", {}), op.domain: op.version}
    body = helper.make_graph(
        [node_proto(node)],
        "one_node",
        # What an operator does may depend on the types of its operands.
        [_value(graph, name) for name in dict.fromkeys(node.operands) if name],
        [onnx.ValueInfoProto(name=name) for name in node.results if name],
    )
    ids = [helper.make_opsetid(domain, int(version)) for domain, version in opsets.items()]
    model = helper.make_model(body, opset_imports=ids)
    return evaluator(model, _KNOWN)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
