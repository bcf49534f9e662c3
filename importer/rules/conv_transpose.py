"""ConvTranspose."""

from __future__ import annotations

from intonnx.importer.qdq.bias import add_apart, addend_codes, bias_constant
from intonnx.importer.qdq.boundary import Boundary, Quantized
from intonnx.importer.registry import quantizes
from intonnx.ir.errors import TypeFailure
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.conv_transpose import (
    ConvTranspose,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    transposed_scale,
)
from intonnx.ir.reasons import Code
from intonnx.ir.types import Array, TensorType, static_shape

from ._weights import kernel_codes, per_channel_refusal

_BY_RANK: dict[int, type[ConvTranspose]] = {
    3: ConvTranspose1d,
    4: ConvTranspose2d,
    5: ConvTranspose3d,
}


@quantizes("ConvTranspose")
def quantize_conv_transpose(boundary: Boundary) -> Refusal | None:
    """Multiply codes into an accumulator; the bias joins it at the accumulator's scale."""
    x, w = boundary.needs_activation(0), kernel_codes(boundary, 1)
    if isinstance(x, Refusal):
        return x
    if isinstance(w, Refusal):
        return w
    op = _operator(boundary, x.type, w.type)
    if isinstance(op, Refusal):
        return op
    scale = _scale(op, x, w)
    if isinstance(scale, Refusal):
        return scale
    misfit = boundary.misfit(op, [x.type, w.type])
    if misfit is not None:
        return misfit
    bias = _bias(boundary, scale, w.type, op.groups)
    hint = f"{boundary.node.results[0]}.accumulator"
    if isinstance(bias, Refusal):
        return add_apart(boundary, 2, bias, lambda: boundary.emit(op, [x.name, w.name, ""], hint),
                         [-1, *[1] * op.spatial])  # fmt: skip
    boundary.accumulated(boundary.emit(op, [x.name, w.name, bias], hint))
    return None


def _operator(boundary: Boundary, x: TensorType, w: TensorType) -> ConvTranspose | Refusal:
    """The operator with explicit pads, as onnxruntime resolves `auto_pad` and `output_shape`."""
    kernel = None if w.shape is None else static_shape(w.shape[2:])
    if w.rank not in _BY_RANK or kernel is None or x.shape is None or len(x.shape) != w.rank:
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"'{boundary.name(0)}' has rank {x.rank}, the weights '{boundary.name(1)}' have "
            f"shape {w.shape}: known ranks 3 to 5 and a known kernel make a convolution",
        )
    n = len(kernel)
    attribute = boundary.attribute
    auto_pad = attribute("auto_pad", "NOTSET")
    explicit = attribute("pads", (0,) * (2 * n)) if auto_pad == "NOTSET" else (0,) * (2 * n)
    op = _BY_RANK[n + 2](
        strides=attribute("strides", (1,) * n),
        dilations=attribute("dilations", (1,) * n),
        pads=explicit,
        output_padding=attribute("output_padding", (0,) * n),
        groups=attribute("group", 1),
    )
    target = attribute("output_shape")
    if target is None and auto_pad in ("NOTSET", "VALID"):
        return op
    if boundary.misfit(op.model_copy(update={"pads": (0,) * (2 * n)}), [x, w]) is not None:
        return op
    return _padded(boundary, op, x, kernel, target)


def _padded(
    boundary: Boundary,
    op: ConvTranspose,
    x: TensorType,
    kernel: tuple[int, ...],
    target: tuple[int, ...] | None,
) -> ConvTranspose | Refusal:
    """Cut the full result to the target, by default stride times the size of `x`."""
    n = op.spatial
    assert x.shape is not None
    op = op.model_copy(update={"pads": (0,) * (2 * n)})
    cuts: list[int] = []
    for axis in range(n):
        surplus = op.growth(kernel[axis], axis)
        if target is not None:
            size = x.shape[2 + axis]
            if not isinstance(size, int):
                return Refusal(
                    code=Code.UNSUPPORTED_ATTRIBUTE,
                    detail=f"output_shape needs the sizes of '{boundary.name(0)}': give it a fixed "
                    "shape, or give pads",
                )
            surplus += size * op.strides[axis] - target[len(target) - n + axis]
        cuts.append(surplus)
    if target is None and any(op.output_padding):
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"onnx and onnxruntime do not agree on the size of '{boundary.node.results[0]}' "
            "with both auto_pad and output_padding: give pads",
        )
    # A target beyond the full result has cells that no window reaches.
    beyond = op.output_padding
    if target is not None:
        beyond = tuple(more + max(0, -cut) for more, cut in zip(beyond, cuts, strict=True))
    small = [max(0, cut) // 2 for cut in cuts]
    large = [max(0, cut) - half for cut, half in zip(cuts, small, strict=True)]
    upper = boundary.attribute("auto_pad", "NOTSET") == "SAME_UPPER"
    pads = (*small, *large) if upper else (*large, *small)
    return op.model_copy(update={"pads": pads, "output_padding": beyond})


def _scale(op: ConvTranspose, x: Quantized, w: Quantized) -> Array | Refusal:
    try:
        return transposed_scale(op, x.type, w.type)
    except TypeFailure as failure:
        if failure.constraint == "C3":
            return per_channel_refusal(w, 1)
        return Refusal(
            code=Code.UNSUPPORTED_TYPE,
            detail=f"the product of the scales of '{x.name}' and '{w.name}' leaves the range of "
            "float32: choose scales nearer to 1",
        )


def _bias(boundary: Boundary, scale: Array, w: TensorType, groups: int) -> str | Refusal:
    if not boundary.has(2):
        return ""
    if w.shape is None or not isinstance(w.shape[1], int):
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"the number of channels of '{boundary.name(1)}' is not known: give it a shape",
        )
    codes = addend_codes(boundary, 2, scale, [w.shape[1] * groups])
    return codes if isinstance(codes, Refusal) else bias_constant(boundary, 2, codes)
