"""BatchNormalization in inference."""

from __future__ import annotations

import numpy as np

from intonnx.importer.qdq.boundary import Boundary, Quantized
from intonnx.importer.qdq.rescale import rescale_channels
from intonnx.importer.registry import quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.batch_norm import BatchNorm
from intonnx.ir.reasons import Code
from intonnx.ir.types import Array, DType, QuantParams, plain

_STATISTICS = ("scale", "bias", "mean", "variance")
_DEFAULT_EPSILON = 1e-5


@quantizes("BatchNormalization")
def quantize_batch_norm(boundary: Boundary) -> Refusal | None:
    """After a convolution or matrix product it joins weights and bias; on codes it is a table."""
    x = _data(boundary)
    if isinstance(x, Refusal):
        return x
    statistics: list[Array] = []
    for index, what in enumerate(_STATISTICS, 1):
        found = boundary.needs_constant(index, what)
        if isinstance(found, Refusal):
            return found
        statistics.append(found.astype(np.float32))
    epsilon = float(boundary.attribute("epsilon", _DEFAULT_EPSILON))
    if x.is_accumulator and rescale_channels(boundary, x, *_affine(statistics, epsilon)):
        return None
    kinds = [plain(DType.F32, array.shape) for array in statistics]

    def norm(out: QuantParams) -> BatchNorm:
        return BatchNorm(epsilon=epsilon, out=out)

    refusal = boundary.needs_quantizers()
    for out in boundary.quantizer_params():
        refusal = refusal or boundary.misfit(norm(out), [x.type, *kinds])
    if refusal is not None:
        return refusal
    names = [
        boundary.name(index) if boundary.name(index) in boundary.rewriter.constants
        and boundary.type(index).dtype is DType.F32
        else boundary.constant_codes(f"{boundary.name(index)}.f32", array, kind)
        for index, (array, kind) in enumerate(zip(statistics, kinds, strict=True), 1)
    ]  # fmt: skip
    return boundary.produced(norm, [x.name, *names])


def _data(boundary: Boundary) -> Quantized | Refusal:
    """The quantized input of a normalization that computes no statistics."""
    training = boundary.attribute("training_mode", 0) or any(boundary.node.results[1:])
    if training:
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"'{boundary.node.results[0]}' is normalized by statistics of the batch itself: "
            "export the model for inference",
        )
    x = boundary.quantized(0)
    if x is None:
        refusal = boundary.needs_quantized(0)
        assert isinstance(refusal, Refusal)
        return refusal
    if x.params.expressed is not DType.F32:
        return Refusal(
            code=Code.UNSUPPORTED_TYPE,
            detail=f"the real value of '{x.name}' is {x.params.expressed}: give its scale as "
            "float32",
        )
    return x


def _affine(statistics: list[Array], epsilon: float) -> tuple[Array, Array]:
    """Factor and addend of each channel, in float64."""
    scale, bias, mean, variance = (array.astype(np.float64) for array in statistics)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factor = scale / np.sqrt(variance + np.float32(epsilon))
        return factor, bias - mean * factor
