"""MaxPool and GlobalMaxPool: on codes, before or after a quantizer."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.codes import OnCodes, is_used, whole
from intonnx.importer.registry import commutes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.max_pool import MaxPool, MaxPool1d, MaxPool2d, MaxPool3d
from intonnx.ir.ops.reduce import ReduceMax
from intonnx.ir.reasons import Code
from intonnx.ir.types import DType, QuantParams, plain, quantized

from ._order import order_refusal
from ._pool import rank_refusal, window

_BY_RANK: dict[int, type[MaxPool]] = {1: MaxPool1d, 2: MaxPool2d, 3: MaxPool3d}


@commutes("MaxPool")
def max_pool_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """The largest code stands for the largest value, as scales are positive.

    The first of the largest codes is the first of the largest values where no two codes have the
    same value.
    """
    if params is not None and not params.per_tensor:
        return Refusal(
            code=Code.PER_AXIS_INPUT,
            detail=f"'{boundary.name(0)}' has a scale for each channel: quantize it per tensor",
        )
    shape = boundary.type(0).shape
    fields = window(boundary.attribute)
    if fields is None or shape is None or len(shape) != len(fields["kernel"]) + 2:
        return rank_refusal(boundary.name(0), shape)
    if is_used(boundary, 1):
        refusal = order_refusal(boundary.name(0), params) if exact and params is not None else None
        if refusal is not None:
            return refusal
        fields["indices"] = "columns" if boundary.attribute("storage_order", 0) else "rows"
    op = _BY_RANK[len(shape) - 2](**fields)
    dtype = boundary.type(0).dtype if boundary.type(0).is_integer else DType.U8
    kind = plain(dtype, shape) if params is None else quantized(params, shape)
    misfit = boundary.misfit(op, [kind])
    if misfit is not None:
        return misfit
    if exact and params is not None and _may_see_padding_only(op, shape[2:]):
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"dilation lets a window of '{boundary.name(0)}' lie in the padding alone, "
            "where the result is the smallest float and no code",
        )
    return OnCodes(op)


@commutes("GlobalMaxPool")
def global_max_pool_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """The largest code over all the spatial axes."""
    rank = boundary.type(0).rank
    if rank is None or rank < 3:
        return rank_refusal(boundary.name(0), boundary.type(0).shape)
    return whole(boundary, params, ReduceMax(axes=tuple(range(2, rank)), keepdims=True))


def _may_see_padding_only(op: MaxPool, sizes: tuple[int | str, ...]) -> bool:
    """Whether a window may hold no cell of the data: a dilated one can step over short axes."""
    return any(
        dilation > 1
        and (op.auto_pad != "NOTSET" or before or after or op.ceil_mode)
        and (isinstance(size, str) or size < dilation)
        for size, dilation, before, after in zip(
            sizes, op.dilations, op.pads[: op.spatial], op.pads[op.spatial :], strict=True
        )
    )
