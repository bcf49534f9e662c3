"""What the rules of max pools and average pools share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from intonnx.ir.graph import Refusal
from intonnx.ir.reasons import Code
from intonnx.ir.types import Dim


def window(attribute: Callable[[str], Any]) -> dict[str, Any] | None:
    """The fields of a pool from a node's attributes; None unless it has 1 to 3 spatial axes.

    Source: MaxPool and AveragePool of every opset, QLinearAveragePool; absent ones have the
    defaults of ONNX (dilations came with opset 10 and 19).
    """
    kernel = attribute("kernel_shape")
    if not isinstance(kernel, list | tuple) or not 1 <= len(kernel) <= 3:
        return None
    n = len(kernel)
    auto_pad = attribute("auto_pad") or "NOTSET"
    pads = attribute("pads") if auto_pad == "NOTSET" else None
    return {
        "kernel": tuple(kernel),
        "strides": tuple(attribute("strides") or (1,) * n),
        "dilations": tuple(attribute("dilations") or (1,) * n),
        "pads": tuple(pads or (0,) * (2 * n)),
        "auto_pad": auto_pad,
        "ceil_mode": bool(attribute("ceil_mode")),
    }


def rank_refusal(name: str, shape: tuple[Dim, ...] | None) -> Refusal:
    """A pool over no spatial axis or more than three, or of a tensor of unknown rank."""
    return Refusal(
        code=Code.UNSUPPORTED_ATTRIBUTE,
        detail=f"'{name}' has shape {shape}: pools over one to three spatial axes are integer",
    )
