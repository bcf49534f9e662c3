"""Operators that commute with quantization: movers, clips and everything else that is monotone.

Q(f(x)) = f'(Q(x)) where f' is f on codes. So a quantizer after f may stand before it, which joins
it to the operator that made x; and a dequantizer before f may stand after it.
"""

from __future__ import annotations

from dataclasses import dataclass

from intonnx.importer.fold import evaluate
from intonnx.importer.registry import CodesRule, codes_rule
from intonnx.ir.graph import Refusal
from intonnx.ir.op import Op
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.quantize import Quantize
from intonnx.ir.reasons import Code
from intonnx.ir.rewriter import NodeId, Rewriter
from intonnx.ir.types import TensorType
from intonnx.protos import node_proto

from .boundary import Boundary


@dataclass(frozen=True)
class OnCodes:
    """An operator on codes: the data is its first operand, `others` are the names of the rest."""

    op: Op
    others: tuple[str, ...] = ()


def lift_quantizers(rewriter: Rewriter) -> None:
    """Move every quantizer up through operators that commute with it, as far as it goes."""
    for node_id in reversed(rewriter.node_ids()):
        node = rewriter.node(node_id)
        if isinstance(node.op, OnnxOp) and node.op.domain == "" and len(node.results) == 1:
            rule = codes_rule(node.op.op_type)
            if rule is not None:
                _lift(Boundary(rewriter, node_id), rule)


def _lift(boundary: Boundary, rule: CodesRule) -> None:
    if not boundary.quantizers() or boundary.read_as_float():
        return
    if not boundary.type(0).dtype.is_float or boundary.constant(0) is not None:
        return
    forms: list[tuple[NodeId, Quantize, OnCodes]] = []
    for node_id in boundary.quantizers():
        quantize = boundary.rewriter.node(node_id).op
        assert isinstance(quantize, Quantize)
        # Per-axis parameters would have to be traced back through the operator.
        form = rule(boundary, quantize.out, False) if quantize.out.per_tensor else None
        if not isinstance(form, OnCodes):
            return
        forms.append((node_id, quantize, form))
    for node_id, quantize, form in forms:
        _swap(boundary, node_id, quantize, form)
    boundary.rewriter.remove(boundary.node_id)


def _swap(boundary: Boundary, quantize_id: NodeId, quantize: Quantize, form: OnCodes) -> None:
    quantizer = boundary.rewriter.remove(quantize_id)
    data = boundary.name(0)
    codes = boundary.emit(quantize, [data], f"{data}.quantized", sources=quantizer.sources)
    boundary.rewriter.emit(
        form.op,
        [codes, *form.others],
        quantizer.results,
        sources=boundary.node.sources,
        before=boundary.node_id,
    )


def on_codes(boundary: Boundary, rule: CodesRule) -> Refusal | None:
    """Let an operator whose data is quantized, or is plain codes, act on the codes."""
    kind = boundary.type(0)
    if kind.is_integer:
        return _on_integers(boundary, rule, kind)
    value = boundary.quantized(0)
    if value is None:
        return Refusal(
            code=Code.INPUT_NOT_QUANTIZED,
            detail=f"'{boundary.name(0)}' arrives as float: put a QuantizeLinear and a "
            "DequantizeLinear before it",
        )
    form = rule(boundary, value.params, True)
    if isinstance(form, Refusal):
        return form
    if value.codes is not None:
        return _on_constant(boundary, form, value.name)
    results = _emit(boundary, form, value.name, [f"{n}.codes" for n in boundary.node.results])
    boundary.moved(results)
    return None


def _on_integers(boundary: Boundary, rule: CodesRule, kind: TensorType) -> Refusal | None:
    # Shape arithmetic on int64 is left to the reference operators: it is no tensor data.
    if kind.quant is None and kind.dtype.bits > 16:
        return None
    form = rule(boundary, kind.quant, True)
    if isinstance(form, Refusal):
        return form
    node = boundary.rewriter.remove(boundary.node_id)
    boundary.rewriter.emit(
        form.op,
        [boundary.name(0), *form.others],
        node.results,
        sources=node.sources,
        before=boundary.node_id,
    )
    return None


def _emit(boundary: Boundary, form: OnCodes, data: str, hints: list[str]) -> tuple[str, ...]:
    names = [boundary.rewriter.fresh(hint) for hint in hints]
    return boundary.rewriter.emit(
        form.op,
        [data, *form.others],
        names,
        sources=boundary.node.sources,
        before=boundary.node_id,
    )


def _on_constant(boundary: Boundary, form: OnCodes, data: str) -> Refusal | None:
    """Constant codes are moved now, by the reference operator, which moves any element type."""
    constants, types = boundary.rewriter.constants, boundary.rewriter.types
    inputs = {name: constants.get(name) for name in boundary.node.operands[1:] if name}
    known = {name: array for name, array in inputs.items() if array is not None}
    arrays = None
    if len(known) == len(inputs):
        proto = node_proto(boundary.node)
        arrays = evaluate(
            proto,
            {**known, proto.input[0]: constants[data]},
            {boundary.op.domain: boundary.op.version},
        )
    if arrays is None:
        return Refusal(
            code=Code.RUNTIME_CONSTANT,
            detail=f"the constant '{boundary.name(0)}' is rearranged at run time",
        )
    operand_types = [types[data], *(types[name] for name in form.others)]
    kinds = form.op.infer(operand_types)
    names = [
        boundary.constant_codes(f"{result}.codes", array, kind.with_shape(array.shape))
        for result, array, kind in zip(boundary.node.results, arrays, kinds, strict=False)
    ]
    boundary.moved(names)
    return None
