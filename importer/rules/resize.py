"""Resize: nearest on codes, linear and cubic between quantizers."""

from __future__ import annotations

from typing import Any

from intonnx.importer.qdq.boundary import Boundary, Quantized
from intonnx.importer.qdq.codes import OnCodes, whole
from intonnx.importer.registry import commutes, quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.resize import Resize, ResizeNearest
from intonnx.ir.reasons import Code
from intonnx.ir.types import Dim, QuantParams, static_shape

Fields = dict[str, Any]
_CROP = "tf_crop_and_resize"


@commutes("Resize")
def resize_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """Cells are moved in nearest mode, unless a crop makes new ones."""
    fields = _fields(boundary)
    if isinstance(fields, Refusal):
        return fields
    if _mode(boundary) != "nearest" or fields["coordinates"] == _CROP:
        return Refusal(
            code=Code.OUTPUT_NOT_QUANTIZED,
            detail=f"'{boundary.node.results[0]}' has values between those of "
            f"'{boundary.name(0)}': put a QuantizeLinear after it",
        )
    return whole(boundary, params, ResizeNearest(**fields))


@quantizes("Resize")
def quantize_resize(boundary: Boundary) -> Refusal | None:
    """Interpolate the real values of the codes, and round once to those of the result."""
    fields, x = _fields(boundary), _data(boundary)
    if isinstance(fields, Refusal):
        return fields
    if isinstance(x, Refusal):
        return x
    mode = _mode(boundary)
    outside = bool(boundary.attribute("exclude_outside", 0))
    if boundary.attribute("antialias", 0) or (outside and mode != "cubic"):
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"'{boundary.node.results[0]}' is resized with antialias, or with "
            "exclude_outside though it is not cubic: leave the attribute out",
        )
    region = _region(boundary, fields) if fields["coordinates"] == _CROP else None
    if isinstance(region, Refusal):
        return region

    def resize(out: QuantParams) -> Resize:
        return Resize(
            **fields,
            mode=mode,
            cubic_a=boundary.attribute("cubic_coeff_a", -0.75),
            exclude_outside=outside,
            region=region,
            extrapolation=boundary.attribute("extrapolation_value", 0.0),
            out=out,
        )

    refusal = boundary.needs_quantizers()
    for out in boundary.quantizer_params():
        refusal = refusal or boundary.misfit(resize(out), [x.type])
    return refusal or boundary.produced(resize, [x.name])


def _data(boundary: Boundary) -> Quantized | Refusal:
    """Codes, or an accumulator: per-axis parameters are judged by the operator."""
    x = boundary.quantized(0)
    if x is not None:
        return x
    refusal = boundary.needs_quantized(0)
    assert isinstance(refusal, Refusal)
    return refusal


def _mode(boundary: Boundary) -> Any:
    return boundary.attribute("mode", "nearest")


def _fields(boundary: Boundary) -> Fields | Refusal:
    """The attributes of `Resampling`, by the rules of the opset."""
    version, shape = boundary.op.version, boundary.type(0).shape
    if shape is None:
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"the rank of '{boundary.name(0)}' is not known: give it a shape",
        )
    axes = boundary.attribute("axes") or range(len(shape))
    fields: Fields = {"axes": tuple(axis % len(shape) for axis in axes)}
    if version < 11:
        fields |= {"coordinates": "asymmetric", "nearest_mode": "simple"}
    else:
        half_pixel = boundary.attribute("coordinate_transformation_mode", "half_pixel")
        nearest_mode = boundary.attribute("nearest_mode", "round_prefer_floor")
        fields |= {"coordinates": half_pixel, "nearest_mode": nearest_mode}
    target = _target(boundary, 1 if version < 11 else 2)
    if isinstance(target, Refusal):
        return target
    if fields["coordinates"] == _CROP and "sizes" not in target:
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"'{boundary.node.results[0]}' is cropped with scales, where onnx and "
            "onnxruntime do not agree on the size: give sizes",
        )
    if fields.get("nearest_mode") == "simple":
        scales = target["scales"]
        if min(scales) >= 1 or max(scales) <= 1:
            fields["nearest_mode"] = "floor" if min(scales) >= 1 else "ceil"
    return _without_whole_axes(fields | target, shape)


def _without_whole_axes(fields: Fields, shape: tuple[Dim, ...]) -> Fields:
    """Only the axes that change: those with other parameters in each index may stay."""
    if fields["coordinates"] == _CROP or fields.get("policy", "stretch") != "stretch":
        return fields
    kind = "scales" if "scales" in fields else "sizes"
    pairs = list(zip(fields["axes"], fields[kind], strict=False))
    if len(pairs) != len(fields["axes"]):
        return fields
    kept = [(axis, n) for axis, n in pairs if n != (1 if kind == "scales" else shape[axis])]
    return {**fields, "axes": tuple(a for a, _ in kept), kind: tuple(n for _, n in kept)}


def _target(boundary: Boundary, index: int) -> Fields | Refusal:
    """Constant `scales` at this input, or constant `sizes` at the next."""
    if boundary.has(index):
        scales = boundary.needs_constant(index, "list of scales")
        if isinstance(scales, Refusal):
            return scales
        # From opset 11 on an empty list is how to say that sizes are given.
        if scales.size:
            return {"scales": tuple(float(s) for s in scales.reshape(-1))}
    sizes = boundary.needs_constant(index + 1, "list of sizes")
    if isinstance(sizes, Refusal):
        return sizes
    policy = boundary.attribute("keep_aspect_ratio_policy", "stretch")
    return {"sizes": tuple(int(size) for size in sizes.reshape(-1)), "policy": policy}


def _region(boundary: Boundary, fields: Fields) -> tuple[float, ...] | Refusal:
    """The part of each axis that is kept: first all starts, then all ends."""
    axes: tuple[int, ...] = fields["axes"]
    shape = boundary.type(0).shape or ()
    found = boundary.needs_constant(1, "region")
    if isinstance(found, Refusal):
        return found
    region = tuple(float(number) for number in found.reshape(-1))
    sizes = static_shape([shape[axis] for axis in axes])
    if len(region) != 2 * len(axes) or sizes is None:
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"'{boundary.name(0)}' of shape {list(shape)} is cropped by {len(region)} "
            f"numbers for {len(axes)} axes: give it a fixed shape",
        )
    pairs = zip(region, region[len(axes) :], strict=False)
    extents = ResizeNearest(**fields).extents(sizes)
    if any(e.scale == 1 and pair != (0, 1) for e, pair in zip(extents, pairs, strict=False)):
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"an axis of '{boundary.node.results[0]}' is cropped and keeps its size, which "
            "onnxruntime does not crop: use a Slice",
        )
    return region
