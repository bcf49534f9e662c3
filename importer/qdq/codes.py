"""Operators that commute with quantization: movers, clips and everything else that is monotone.

Q(f(x)) = f'(Q(x)) where f' is f on codes. So a quantizer after f may stand before it, which joins
it to the operator that made x; and a dequantizer before f may stand after it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from intonnx.importer.fold import MAX_FOLDED_ELEMENTS, evaluate
from intonnx.importer.malformed import reading
from intonnx.importer.registry import CodesRule, codes_rule, lifting_rule
from intonnx.ir.errors import TypeFailure
from intonnx.ir.graph import Refusal
from intonnx.ir.op import Op
from intonnx.ir.ops.identity import Identity
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.quantize import Quantize
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.reasons import Code
from intonnx.ir.rewriter import NodeId, Rewriter
from intonnx.ir.shapes import refined
from intonnx.ir.types import Array, QuantParams, TensorType, plain, quantized, static_shape
from intonnx.protos import node_proto

from .boundary import Boundary


@dataclass(frozen=True)
class OnCodes:
    """An operator on codes: the data is its first operand, `others` are the names of the rest.

    An `Identity` stands for no operator at all: the codes go on as they are.
    """

    op: Op
    others: tuple[str, ...] = ()


def is_used(boundary: Boundary, result: int) -> bool:
    """Whether anything reads this result of the float operator, if it has so many."""
    name = boundary.node.results[result] if result < len(boundary.node.results) else ""
    rewriter = boundary.rewriter
    return bool(name) and (rewriter.is_output(name) or bool(rewriter.user_ids(name)))


def whole(
    boundary: Boundary, params: QuantParams | None, op: Op, others: tuple[str, ...] = ()
) -> OnCodes | Refusal:
    """A mover on codes, or a refusal where per-axis or blocked parameters do not survive it."""
    form = OnCodes(op, others)
    if params is None or params.per_tensor:
        return form
    shape = boundary.type(0).shape
    types = [boundary.rewriter.types[name] for name in others]
    try:
        op.infer([quantized(params, shape), *types])
    except TypeFailure as failure:
        # What plain codes do not survive either is an error of the model.
        op.infer([plain(params.storage, shape), *types])
        value = boundary.quantized(0)
        name = boundary.name(0) if value is None else value.name
        return Refusal(
            code=Code.PER_AXIS_INPUT if params.block is None else Code.BLOCKED_INPUT,
            detail=f"'{name}' has a scale for each "
            f"{'index' if params.block is None else 'block'} of axis {params.axis}, and here "
            f"{failure.cause.partition(': ')[2]}: quantize it per tensor",
        )
    return form


def lift_quantizers(rewriter: Rewriter) -> None:
    """Move every quantizer up through operators that commute with it, as far as it goes."""
    for node_id in reversed(rewriter.node_ids()):
        node = rewriter.node(node_id)
        if isinstance(node.op, OnnxOp) and node.op.domain == "":
            with reading(node.label):
                _lift_over(rewriter, node_id, node.op)


def _lift_over(rewriter: Rewriter, node_id: NodeId, op: OnnxOp) -> None:
    rule = codes_rule(op.op_type)
    if rule is not None:
        _lift(Boundary(rewriter, node_id), rule)
    elif (lifting := lifting_rule(op.op_type)) is not None:
        boundary = Boundary(rewriter, node_id)
        # Without a quantizer to move, types that later steps still refine would be read.
        if boundary.quantizers() and not boundary.read_as_float():
            lifting(boundary)


def _lift(boundary: Boundary, rule: CodesRule) -> None:
    if any(is_used(boundary, index) for index in range(1, len(boundary.node.results))):
        return
    if not boundary.quantizers() or boundary.read_as_float():
        return
    if not boundary.type(0).dtype.is_float or boundary.constant(0) is not None:
        return
    forms: list[tuple[NodeId, Quantize, OnCodes]] = []
    for node_id in boundary.quantizers():
        quantize = boundary.rewriter.node(node_id).op
        assert isinstance(quantize, Quantize)
        # Per-axis parameters would have to be traced back through the operator.
        form = _form(boundary, rule, quantize.out, False) if quantize.out.per_tensor else None
        if not isinstance(form, OnCodes):
            return
        forms.append((node_id, quantize, form))
    for node_id, quantize, form in forms:
        _swap(boundary, node_id, quantize, form)
    boundary.rewriter.remove(boundary.node_id)


def _swap(boundary: Boundary, quantize_id: NodeId, quantize: Quantize, form: OnCodes) -> None:
    data = boundary.name(0)
    if isinstance(form.op, Identity):
        quantizer = boundary.rewriter.node(quantize_id)
        boundary.rewriter.update(quantize_id, replace(quantizer, operands=(data,)))
        return
    quantizer = boundary.rewriter.remove(quantize_id)
    codes = boundary.emit(quantize, [data], f"{data}.quantized", sources=quantizer.sources)
    boundary.rewriter.emit(
        form.op,
        [codes, *form.others],
        quantizer.results,
        sources=boundary.node.sources,
        before=boundary.node_id,
    )


def _form(
    boundary: Boundary, rule: CodesRule, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """What the rule answers; a refusal where the operator needs a rank that is not known."""
    form = rule(boundary, params, exact)
    kind = boundary.type(0)
    if isinstance(form, Refusal) or kind.shape is not None:
        return form
    codes = kind if params is None else quantized(params, None)
    others = [boundary.rewriter.types[name] for name in form.others]
    return boundary.misfit(form.op, [codes, *others]) or form


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
    form = _form(boundary, rule, value.params, True)
    if isinstance(form, Refusal):
        return form
    if isinstance(form.op, Identity):
        boundary.moved([value.name])
        return None
    if value.codes is not None and (arrays := _computed(boundary, value.codes)) is not None:
        constants = _constants(boundary, form, value.name, arrays)
        if constants is not None:
            boundary.moved(constants)
            return None
    results = boundary.node.results
    hints = [f"{name}.codes" if name else "" for name in results]
    names = [boundary.rewriter.fresh(hint) if hint else "" for hint in hints]
    boundary.moved(_emit(boundary, form, value.name, names))
    return None


def _on_integers(boundary: Boundary, rule: CodesRule, kind: TensorType) -> Refusal | None:
    # Shape arithmetic on int64 is left to the reference operators: it is no tensor data.
    if kind.quant is None and kind.dtype.bits > 16:
        made = boundary.rewriter.producer(boundary.name(0))
        sums = made is not None and made.op.name.startswith("qnn.")
        leaves = sums and boundary.result_type.dtype.is_float
        return _refusal_of(rule(boundary, None, True)) if leaves else None
    form = _form(boundary, rule, kind.quant, True)
    if isinstance(form, Refusal):
        return form
    result = boundary.node.results[0]
    boundary.rewriter.remove(boundary.node_id)
    if isinstance(form.op, Identity) and not boundary.rewriter.is_output(result):
        boundary.rewriter.replace_uses(result, boundary.name(0))
    else:
        _emit(boundary, form, boundary.name(0), list(boundary.node.results))
    for name in filter(None, boundary.node.results):
        keep_plain_readers(boundary.rewriter, name)
    return None


def _refusal_of(form: OnCodes | Refusal) -> Refusal | None:
    return form if isinstance(form, Refusal) else None


def keep_plain_readers(rewriter: Rewriter, name: str) -> None:
    """Operators that were translated on plain integers go on reading them as such."""
    readers = [i for i in rewriter.user_ids(name) if not _takes_any(rewriter.node(i).op)]
    if name not in rewriter.types or rewriter.types[name].quant is None or not readers:
        return
    integers = rewriter.fresh(f"{name}.integers")
    rewriter.emit(StorageCast(out=None), [name], [integers], before=min(readers))
    for node_id in readers:
        node = rewriter.node(node_id)
        operands = tuple(integers if operand == name else operand for operand in node.operands)
        rewriter.update(node_id, replace(node, operands=operands))


def _takes_any(op: Op) -> bool:
    return isinstance(op, OnnxOp | StorageCast)


def _emit(boundary: Boundary, form: OnCodes, data: str, names: list[str]) -> tuple[str, ...]:
    """Add the operator on codes; its results keep what is known of the float results' shapes."""
    types = boundary.rewriter.types
    known = [types[result] if result else None for result in boundary.node.results]
    boundary.rewriter.emit(
        form.op,
        [data, *form.others],
        names,
        sources=boundary.node.sources,
        before=boundary.node_id,
    )
    types.update({name: refined(types[name], kind) for name, kind in zip(names, known, strict=True)
                  if name})  # fmt: skip
    return tuple(names)


def _computed(boundary: Boundary, codes: Array) -> list[Array] | None:
    """Constant codes moved now, by the reference operator, which moves any element type.

    None when another operand is computed at run time, or the results are too large to keep.
    """
    constants = boundary.rewriter.constants
    others = [name for name in boundary.node.operands[1:] if name]
    shapes = [
        static_shape(boundary.rewriter.types[result].shape)
        for result in boundary.node.results
        if result
    ]
    size = sum(math.prod(shape) for shape in shapes if shape is not None)
    if any(name not in constants for name in others) or size > MAX_FOLDED_ELEMENTS:
        return None
    proto = node_proto(boundary.node)
    inputs = {**{name: constants[name] for name in others}, proto.input[0]: codes}
    return evaluate(proto, inputs, {boundary.op.domain: boundary.op.version})


def _constants(
    boundary: Boundary, form: OnCodes, data: str, arrays: list[Array]
) -> list[str] | None:
    """The computed codes as constants; None where the reference operator moved others than ours."""
    types = boundary.rewriter.types
    kinds = form.op.infer([types[data], *(types[name] for name in form.others)])
    moved = list(zip(boundary.node.results, arrays, kinds, strict=False))
    if any(static_shape(kind.shape) not in (None, array.shape) for _, array, kind in moved):
        return None
    return [
        boundary.constant_codes(f"{result}.codes", array, kind.with_shape(array.shape))
        for result, array, kind in moved
    ]
