"""The onnx package's reference evaluator for one node, at the opset that the node has."""

from __future__ import annotations

from typing import Any

import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from intonnx.ir.ops.slice import cuts

NewOps = list[type[OpRun]]


class BatchNormalization(OpRun):
    """The reference takes the momentum of opsets 9 to 13 for a sign of training, and so it trains.

    Only opset 14 and later say whether they do. Source: ONNX BatchNormalization-9 and -14.
    """

    op_domain = ""

    def _run(
        self,
        x: Any,
        scale: Any,
        bias: Any,
        mean: Any,
        variance: Any,
        epsilon: float = 1e-5,
        momentum: float = 0.9,
        training_mode: int = 0,
    ) -> tuple[Any, ...]:
        results: tuple[Any, ...] = ()
        if training_mode:
            axes = tuple(axis for axis in range(x.ndim) if axis != 1)
            before, (mean, variance) = (mean, variance), (x.mean(axis=axes), x.var(axis=axes))
            results = tuple(
                (old * momentum + new * (1 - momentum)).astype(x.dtype)
                for old, new in zip(before, (mean, variance), strict=True)
            )
        a, b, m, v = (
            array.reshape(-1, *[1] * (x.ndim - 2)) for array in (scale, bias, mean, variance)
        )
        y = a * (x - m) / (v + epsilon) ** 0.5 + b
        return (y.astype(x.dtype), *results)


class Slice(OpRun):
    """The reference skips the first element where a slice backwards starts before it.

    Source: ONNX Slice-13: backwards, a start is clamped to 0 and the last index.
    """

    op_domain = ""

    def _run(
        self, data: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None
    ) -> tuple[Any, ...]:
        return (data[cuts(data.shape, starts, ends, axes, steps)],)


def evaluator(model: onnx.ModelProto, new_ops: NewOps | None = None) -> ReferenceEvaluator:
    """The evaluator of a model of one node or of a few.

    The reference operators begin at newer opsets than the operators themselves: where there is
    none for the model's opset, one that reads the same inputs and attributes stands in.
    """
    new_ops = [BatchNormalization, Slice, *(new_ops or [])]
    try:
        return ReferenceEvaluator(model, new_ops=new_ops)
    except Exception:  # the evaluator raises many kinds
        for version in _newer(model):
            copy = onnx.ModelProto()
            copy.CopyFrom(model)
            for entry in copy.opset_import:
                if entry.domain in ("", "ai.onnx"):
                    entry.version = version
            try:
                return ReferenceEvaluator(copy, new_ops=new_ops)
            except Exception:
                continue
        raise


def _newer(model: onnx.ModelProto) -> list[int]:
    """Newer opsets at which every node of ai.onnx is written in the same way."""
    opset = next((e.version for e in model.opset_import if e.domain in ("", "ai.onnx")), None)
    if opset is None:
        return []
    types = {node.op_type for node in model.graph.node if node.domain in ("", "ai.onnx")}
    versions = range(opset + 1, onnx.defs.onnx_opset_version() + 1)
    return [
        version
        for version in versions
        if all(signature(op_type, opset) == signature(op_type, version) for op_type in types)
    ]


def signature(op_type: str, opset: int) -> object:
    """The inputs, outputs, attributes and defaults of an operator of ai.onnx at an opset."""
    schema = onnx.defs.get_schema(op_type, opset, "")
    return (
        [(given.name, given.option) for given in schema.inputs],
        [(given.name, given.option) for given in schema.outputs],
        {
            name: (attribute.type, attribute.default_value.SerializeToString(deterministic=True))
            for name, attribute in schema.attributes.items()
        },
    )
