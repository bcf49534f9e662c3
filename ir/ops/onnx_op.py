"""An ONNX operator that the IR does not model: kept as it is, run by the reference operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, cast

import numpy as np
from pydantic import BeforeValidator, Field

from intonnx.ir.op import Op, OperandTypes, ResultTypes, element_count, register_op
from intonnx.ir.types import Record, TensorType


class Opaque(Record):
    """An attribute that the IR does not look into (a tensor, a subgraph, a type, an empty list).

    Attributes:
        what: what it is, for readers: "tensor", "graph", ...
        data: the serialized AttributeProto.
    """

    what: str
    data: bytes


def _attribute(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        # ONNX float attributes are float32; the text form prints the shortest float32 spelling.
        return float(np.float32(cast("float", value)))
    if isinstance(value, list | tuple):
        return tuple(_attribute(item) for item in cast("Sequence[object]", value))
    return value


Attribute = Annotated[Any, BeforeValidator(_attribute)]
"""int, float (float32 precision), str, bytes, a non-empty tuple of one of these, or Opaque."""


@register_op
class OnnxOp(Op):
    """An operator kept as ONNX has it: `onnx.<op_type>`, printed with its domain unless ai.onnx.

    Operands and results: those of the ONNX operator, then the values that its subgraphs capture.
    The result types are the declared `types`. Source: the ONNX operator specification.

    Attributes:
        op_type, domain: which operator; the domain of ai.onnx is "".
        version: the opset of the domain that the model uses.
        attributes: name to value; a body of If, Loop or Scan is a `Graph`, see `graph.bodies_of`.
        types: the types of the results.
        captures: how many trailing operands are values captured by subgraphs.

    Constraints:
        C1: there are as many operands as captures, or more.
    """

    name: ClassVar[str] = "onnx"
    signature: ClassVar[tuple[str, ...]] = ("inputs*",)
    op_type: str
    domain: str = ""
    version: int
    attributes: dict[str, Attribute] = Field(default_factory=dict)
    types: tuple[TensorType, ...]
    captures: int = 0

    def infer(self, operands: OperandTypes) -> ResultTypes:
        fits = 0 <= self.captures <= len(operands)
        self.require(fits, "C1", f"{self.captures} captures of {len(operands)} operands")
        return self.types

    def multiply_accumulates(self, operands: OperandTypes, results: ResultTypes) -> int:
        if self.domain or len(operands) < 2 or operands[0] is None or operands[1] is None:
            return 0
        x, w = operands[0].shape, operands[1].shape
        if self.op_type == "Conv":
            return element_count(results[0].shape) * element_count((w or ())[1:])
        if self.op_type == "ConvTranspose":
            return element_count(x) * element_count((w or ())[1:])
        if self.op_type in ("MatMul", "Gemm") and x:
            inner = x[0] if self.attribute("transA", 0) else x[-1]
            return element_count(results[0].shape) * element_count((inner,))
        return 0

    @property
    def title(self) -> str:
        return f"onnx.{self.domain}.{self.op_type}" if self.domain else f"onnx.{self.op_type}"

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute's value, or the default when the model does not give it."""
        return self.attributes.get(name, default)
