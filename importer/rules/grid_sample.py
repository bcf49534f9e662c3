"""GridSample."""

from __future__ import annotations

from typing import Any

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.registry import quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.grid_sample import GridSample
from intonnx.ir.types import QuantParams

_OLD_MODES = {"bilinear": "linear", "bicubic": "cubic"}


@quantizes("GridSample")
def quantize_grid_sample(boundary: Boundary) -> Refusal | None:
    """Sample the codes; the grid is read as codes where it is quantized, else as it is."""
    x = boundary.needs_activation(0)
    if isinstance(x, Refusal):
        return x
    places = boundary.quantized(1)
    grid = boundary.name(1) if places is None else places.name
    # Both `bilinear`, the default of old, and `linear`, that of today, are the same.
    given = boundary.attribute("mode", "linear")
    mode: Any = _OLD_MODES.get(given, given)

    def sample(out: QuantParams) -> GridSample:
        return GridSample(
            mode=mode,
            padding=boundary.attribute("padding_mode", "zeros"),
            align_corners=bool(boundary.attribute("align_corners", 0)),
            out=out,
        )

    refusal = boundary.needs_quantizers()
    for out in boundary.quantizer_params():
        kinds = [x.type, boundary.rewriter.types[grid]]
        refusal = refusal or boundary.misfit(sample(out), kinds)
    return refusal or boundary.produced(sample, [x.name, grid])
