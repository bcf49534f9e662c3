"""Sizes of sliding windows: what convolutions and pools share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from .types import UNKNOWN_DIM, Dim

AutoPad = Literal["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]


def same_pads(
    size: int, kernel: int, stride: int, dilation: int, auto_pad: AutoPad
) -> tuple[int, int]:
    """Cells added before and after one axis so that ceil(size / stride) windows fit.

    Source: ONNX Conv-11, `auto_pad`.
    """
    windows = -(-size // stride)
    total = max(0, (windows - 1) * stride + (kernel - 1) * dilation + 1 - size)
    small, large = total // 2, total - total // 2
    return (small, large) if auto_pad == "SAME_UPPER" else (large, small)


def resolve_pads(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    auto_pad: AutoPad,
) -> tuple[int, ...]:
    """Explicit pads (all befores, then all afters, as ONNX orders them) for known sizes."""
    if auto_pad == "NOTSET":
        return tuple(pads)
    if auto_pad == "VALID":
        return (0,) * (2 * len(kernel))
    pairs = [
        same_pads(size, k, stride, dilation, auto_pad)
        for size, k, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True)
    ]
    return tuple(before for before, _ in pairs) + tuple(after for _, after in pairs)


def window_count(
    size: Dim,
    kernel: int,
    stride: int,
    dilation: int,
    pads: tuple[int, int],
    auto_pad: AutoPad,
    *,
    ceil_mode: bool = False,
) -> Dim:
    """The size of one axis after a sliding window; an unknown size gives an unknown size.

    Source: ONNX MaxPool-22 and Conv-22. With `ceil_mode` a last window that would start in the
    padding after the data is dropped.
    """
    if not isinstance(size, int):
        return size if _keeps_size(kernel, stride, dilation, pads, auto_pad) else UNKNOWN_DIM
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        return -(-size // stride)
    before, after = (0, 0) if auto_pad == "VALID" else pads
    free = size + before + after - ((kernel - 1) * dilation + 1)
    if not ceil_mode:
        return free // stride + 1
    count = -(-free // stride) + 1
    return count - 1 if (count - 1) * stride >= size + before else count


def _keeps_size(
    kernel: int, stride: int, dilation: int, pads: tuple[int, int], auto_pad: AutoPad
) -> bool:
    if stride != 1:
        return False
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        return True
    return (0 if auto_pad == "VALID" else sum(pads)) == (kernel - 1) * dilation
