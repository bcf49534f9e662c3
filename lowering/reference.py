"""Run operators that stayed ONNX with the onnx package's own reference implementation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx.reference import ReferenceEvaluator

from intonnx.ir.errors import CompileFailure, IntonnxError, RunFailure
from intonnx.ir.graph import Graph, Node
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.types import Array
from intonnx.protos import node_proto

from .integer.kernel import Kernel
from .opsets import converted, means_the_same

_OLDEST = 13


def reference_kernel(graph: Graph, node: Node) -> Kernel:
    """A kernel that hands the node to the reference evaluator.

    Raises CompileFailure when the onnx package has no implementation of the operator; at run time
    RunFailure when it fails.
    """
    op = node.op
    assert isinstance(op, OnnxOp)
    try:
        evaluator = _evaluator(graph, node, op)
    except IntonnxError:
        raise
    except Exception as error:  # the evaluator raises many kinds, for unknown operators too
        raise CompileFailure(
            f"the onnx package cannot run {op.title}: {_first_line(error)}", node=node.label
        ) from None
    names = [name for name in node.operands if name]

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        feeds = dict(zip(names, (x for x in operands if x is not None), strict=True))
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                results = evaluator.run(None, feeds)
        except Exception as error:
            raise RunFailure(
                f"the onnx package cannot run {op.title}: {_first_line(error)}", node=node.label
            ) from None
        return tuple(np.asarray(result) for result in results)

    return run


def _evaluator(graph: Graph, node: Node, op: OnnxOp) -> ReferenceEvaluator:
    # The reference operators know few meanings from before this opset.
    if op.version < _OLDEST and not means_the_same(op, _OLDEST):
        return ReferenceEvaluator(converted(graph, node, _OLDEST))
    opsets = {**graph.metadata.get("opsets", {}), op.domain: op.version}
    return ReferenceEvaluator(node_proto(node), opsets=opsets)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
