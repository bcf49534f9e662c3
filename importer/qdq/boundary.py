"""The boundary of one float operator: the parameters that arrive, and those that leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from intonnx.ir.errors import TypeFailure
from intonnx.ir.graph import Node, Refusal, Source
from intonnx.ir.op import Op
from intonnx.ir.ops.identity import Identity
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.quantize import Dequantize, Quantize, Requantize
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.quantization import dequantize_array
from intonnx.ir.reasons import Code
from intonnx.ir.rewriter import NodeId, Rewriter
from intonnx.ir.shapes import refined
from intonnx.ir.types import Array, DType, QuantParams, TensorType


@dataclass(frozen=True)
class Quantized:
    """A quantized value that reaches an operator through a dequantize.

    Attributes:
        name: the codes.
        type: their type; `type.quant` is never None.
        codes: the codes themselves when they are constant.
    """

    name: str
    type: TensorType
    codes: Array | None

    @property
    def params(self) -> QuantParams:
        """The quantization parameters."""
        return self.type.params

    @property
    def is_accumulator(self) -> bool:
        """Whether the codes are the 32-bit or 64-bit sums of an accumulating operator."""
        return self.codes is None and self.params.storage in (DType.I32, DType.I64)


class Boundary:
    """One float operator of the literal graph, seen from the quantizers around it.

    A rule reads it and either returns a Refusal or emits operators and ends with one of
    `accumulated`, `produced` and `moved`, which connect the result and return None.
    """

    def __init__(self, rewriter: Rewriter, node_id: NodeId) -> None:
        self.rewriter = rewriter
        self.node_id = node_id
        node = rewriter.node(node_id)
        assert isinstance(node.op, OnnxOp)
        self.node: Node = node
        self.op: OnnxOp = node.op

    # -- what arrives ---------------------------------------------------------------------------

    def has(self, index: int) -> bool:
        """Whether an optional input is given."""
        return index < len(self.node.operands) and bool(self.node.operands[index])

    def name(self, index: int) -> str:
        """The name of an input."""
        return self.node.operands[index]

    def type(self, index: int) -> TensorType:
        """The type of an input as the float operator sees it."""
        return self.rewriter.types[self.name(index)]

    @property
    def result_type(self) -> TensorType:
        """The type of the first result of the float operator."""
        return self.rewriter.types[self.node.results[0]]

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute of the float operator."""
        return self.op.attribute(name, default)

    def quantized(self, index: int) -> Quantized | None:
        """The quantized value behind an input, or None when it arrives as float."""
        if not self.has(index):
            return None
        producer = self.rewriter.producer(self.name(index))
        if producer is None or not is_dequantized(producer):
            return None
        codes = producer.operands[0]
        return Quantized(codes, self.rewriter.types[codes], self.rewriter.constants.get(codes))

    def constant(self, index: int) -> Array | None:
        """The real value of a constant input, given as such or through a dequantize."""
        if not self.has(index):
            return None
        if (array := self.rewriter.constants.get(self.name(index))) is not None:
            return array
        value = self.quantized(index)
        if value is None or value.codes is None:
            return None
        return dequantize_array(value.codes, value.params)

    # -- what leaves ----------------------------------------------------------------------------

    def quantizers(self, result: int = 0) -> list[NodeId]:
        """The quantize nodes that read a result."""
        return [
            node_id
            for node_id in self.rewriter.user_ids(self.node.results[result])
            if isinstance(self.rewriter.node(node_id).op, Quantize)
        ]

    def quantizer_params(self, result: int = 0) -> list[QuantParams]:
        """The parameters that the quantize nodes give a result."""
        ops = [self.rewriter.node(node_id).op for node_id in self.quantizers(result)]
        return [op.out for op in ops if isinstance(op, Quantize)]

    def read_as_float(self, result: int = 0) -> bool:
        """Whether something other than a quantize needs a result."""
        name = self.node.results[result]
        readers = self.rewriter.user_ids(name)
        return self.rewriter.is_output(name) or len(readers) > len(self.quantizers(result))

    # -- rules build the integer form -----------------------------------------------------------

    def emit(
        self,
        op: Op,
        operands: Sequence[str],
        hint: str,
        sources: Sequence[Source] | None = None,
    ) -> str:
        """Add an operator with one result in front of this node; returns the result's name.

        The name is `hint` or a fresh one made from it; the sources are this node's unless given.
        """
        name = self.rewriter.fresh(hint)
        self.rewriter.emit(
            op,
            operands,
            [name],
            sources=self.node.sources if sources is None else sources,
            before=self.node_id,
        )
        return name

    def constant_codes(self, hint: str, codes: Array, kind: TensorType) -> str:
        """Add a constant of codes; returns its name."""
        return self.rewriter.add_constant(hint, codes, kind)

    def accumulated(self, accumulator: str) -> None:
        """End a rule whose result is an accumulator: each quantize becomes a requantize.

        What reads the result as float reads the dequantized accumulator.
        """
        self.moved([accumulator])

    def moved(self, codes: Sequence[str]) -> None:
        """End a rule whose results are codes with the parameters of the input.

        One that is not quantized (indices) takes the name of the float operator's result.
        """
        self.rewriter.remove(self.node_id)
        for index, name in enumerate(codes):
            if not self.node.results[index]:
                continue
            if self.rewriter.types[name].quant is not None:
                self._deliver(index, name)
            elif self.rewriter.producer(name) is not None:
                self.rewriter.rename(name, self.node.results[index])
            else:
                self.rewriter.emit(
                    Identity(), [name], [self.node.results[index]], before=self.node_id
                )

    def produced(
        self,
        make: Callable[[QuantParams], Op],
        operands: Sequence[str] | Callable[[QuantParams], Sequence[str]],
        *,
        sources: Sequence[Source] | None = None,
        partly: bool = False,
    ) -> Refusal | None:
        """End a rule whose operator needs the parameters of its result: one for each quantize.

        Args:
            make: the operator for these parameters of its result.
            operands: its operands, or a function from the parameters to them.
            sources: the nodes whose work it does, this node's unless given.
            partly: where something else needs the unquantized result, leave the float operator to
                it. Without this nothing is changed then.

        Refuses when no quantize follows, and when something else needs the unquantized result.
        """
        refusal = self.needs_quantizers()
        if refusal is not None and not partly:
            return refusal
        for node_id in self.quantizers():
            quantizer = self.rewriter.remove(node_id)
            assert isinstance(quantizer.op, Quantize)
            out = quantizer.op.out
            self.rewriter.emit(
                make(out),
                operands(out) if callable(operands) else operands,
                quantizer.results,
                sources=[*(self.node.sources if sources is None else sources), *quantizer.sources],
                before=self.node_id,
            )
        if refusal is None:
            self.rewriter.remove(self.node_id)
        return refusal

    def needs_quantizers(self) -> Refusal | None:
        """A refusal unless everything that reads the result quantizes it."""
        name = self.node.results[0]
        if not self.quantizers():
            return Refusal(
                code=Code.OUTPUT_NOT_QUANTIZED,
                detail=f"nothing quantizes '{name}': put a QuantizeLinear after it",
            )
        if self.read_as_float():
            return Refusal(
                code=Code.FLOAT_RESULT_USED,
                detail=f"'{name}' is also read before it is quantized: let every reader take it "
                "from its QuantizeLinear",
            )
        return None

    def needs_quantized(self, index: int) -> Quantized | Refusal:
        """An input that must arrive quantized with one scale and zero point."""
        value = self.quantized(index)
        if value is None:
            return Refusal(
                code=Code.INPUT_NOT_QUANTIZED,
                detail=f"'{self.name(index)}' arrives as float: put a QuantizeLinear and a "
                "DequantizeLinear before it",
            )
        if not value.params.per_tensor:
            return Refusal(
                code=Code.PER_AXIS_INPUT,
                detail=f"'{value.name}' has a scale for each index of axis {value.params.axis}: "
                "quantize it per tensor",
            )
        return value

    def needs_activation(self, index: int) -> Quantized | Refusal:
        """As `needs_quantized`, for 8-bit or 16-bit codes: an accumulator does not do."""
        given = self.quantized(index)
        if given is not None and given.params.storage.bits > 16:
            return Refusal(
                code=Code.INPUT_NOT_QUANTIZED,
                detail=f"'{self.name(index)}' arrives with {given.params.storage} codes: put a "
                "QuantizeLinear and a DequantizeLinear before it",
            )
        return self.needs_quantized(index)

    def needs_constant(self, index: int, what: str) -> Array | Refusal:
        """The value of an input that must be constant; `what` says what it is for."""
        value = self.constant(index)
        if value is None:
            return Refusal(
                code=Code.RUNTIME_CONSTANT,
                detail=f"the {what} '{self.name(index)}' is computed at run time: make it a "
                "constant",
            )
        return np.asarray(value)

    def misfit(self, op: Op, operands: Sequence[TensorType | None]) -> Refusal | None:
        """A refusal when these operands violate a constraint of the operator, else None."""
        try:
            op.infer(operands)
        except TypeFailure as error:
            return Refusal(
                code=Code.UNSUPPORTED_ATTRIBUTE, detail=f"at '{self.name(0)}': {error.cause}"
            )
        return None

    def _deliver(self, index: int, codes: str) -> None:
        read_as_float = self.read_as_float(index)
        for node_id in self.quantizers(index):
            codes = requantize(self.rewriter, node_id, codes)
        if read_as_float:
            result = self.node.results[index]
            self.rewriter.emit(Dequantize(), [codes], [result], before=self.node_id)


def made_by(rewriter: Rewriter, name: str, op_type: str) -> Node | None:
    """The node that makes a value, if it is this operator of ai.onnx."""
    node = rewriter.producer(name)
    if node is None or not isinstance(node.op, OnnxOp) or node.op.domain:
        return None
    return node if node.op.op_type == op_type else None


def is_dequantized(node: Node) -> bool:
    """Whether the node gives the real values of the codes that it reads, with nothing added."""
    return isinstance(node.op, Dequantize) and len(node.operands) == 1


def requantize(rewriter: Rewriter, quantize_id: NodeId, codes: str) -> str:
    """Let a quantize node take codes instead of real values: a requantize, or nothing at all.

    Returns the name that the codes have from then on.
    """
    quantizer = rewriter.node(quantize_id)
    assert isinstance(quantizer.op, Quantize)
    result = quantizer.results[0]
    known, lossless = rewriter.types[codes].params, _lossless(quantizer.op.out)
    if known == quantizer.op.out and lossless:
        if not rewriter.is_output(result):
            rewriter.remove(quantize_id)
            rewriter.replace_uses(result, codes)
            return codes
        # A name that the model gave stays, and so does an operator that copies it to the output.
        if codes not in rewriter.graph.types and rewriter.producer(codes) is not None:
            rewriter.remove(quantize_id)
            rewriter.rename(codes, result)
            return result
    # Codes of a narrower range are the codes they will be.
    same = lossless and known != quantizer.op.out and quantizer.op.out.covers(known)
    op = StorageCast(out=quantizer.op.out) if same else Requantize(out=quantizer.op.out)
    (inferred,) = op.infer([rewriter.types[codes]])
    rewriter.types[result] = refined(inferred, rewriter.types[result])
    rewriter.update(quantize_id, Node(op, (codes,), (result,), quantizer.sources))
    return codes


def _lossless(params: QuantParams) -> bool:
    """Whether quantizing the dequantized codes gives the codes back.

    The product with the scale rounds: float16 keeps 11 bits of it and bfloat16 only 8.
    """
    return params.expressed is DType.F32 or (
        params.expressed is DType.F16 and params.storage.bits <= 8
    )
