"""The named numerics: which arithmetic a compiled graph follows."""

from __future__ import annotations

from typing import Literal, get_args

from intonnx.ir.errors import CompileFailure

Numerics = Literal["qlinear", "qdq", "fixed"]
"""`qlinear`: exact integer sums and one float32 multiplier, as the QLinear operators of ONNX do.
`qdq`: the literal meaning of a QDQ model: dequantize, the float operator, quantize.
`fixed`: integers alone, multipliers of 31 bits and rounding shifts: the same on every machine."""


def checked_numerics(name: str) -> Numerics:
    """The numerics of this name. Raises CompileFailure when there is none."""
    for known in get_args(Numerics):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise CompileFailure(f"no numerics '{name}': choose one of {', '.join(get_args(Numerics))}")
