"""What max pools and average pools share: a window that slides over the spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from intonnx.ir.op import Op
from intonnx.ir.spatial import AutoPad, resolve_pads, window_count
from intonnx.ir.types import Dim


class Pool(Op):
    """A window of `kernel` cells over each channel; one entry of a tuple for each spatial axis.

    Attributes:
        kernel, strides, dilations: cells of the window, steps between windows and between cells.
        pads: cells before each spatial axis, then after each; zeros unless auto_pad is NOTSET.
        ceil_mode: whether a last window that reaches beyond the padding counts.
        auto_pad: as in ONNX MaxPool-22, kept for sizes that are known at run time only.
    """

    spatial: ClassVar[int]
    signature: ClassVar[tuple[str, ...]] = ("x",)
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    ceil_mode: bool = False
    auto_pad: AutoPad = "NOTSET"

    def check_window(self) -> None:
        """Check C2, which every pool states."""
        n = self.spatial
        lengths = len(self.kernel) == len(self.strides) == len(self.dilations) == n
        self.require(lengths and len(self.pads) == 2 * n, "C2", f"kernel {self.kernel}")
        least = min(*self.kernel, *self.strides, *self.dilations)
        self.require(least > 0, "C2", f"kernel {self.kernel}, strides {self.strides}")
        small = all(0 <= p < k for p, k in zip(self.pads, self.kernel * 2, strict=True))
        self.require(small, "C2", f"pads {self.pads} around a kernel of {self.kernel}")

    def pooled(self, sizes: Sequence[Dim]) -> tuple[Dim, ...]:
        """The spatial sizes of the result. Raises TypeFailure C3 when no window fits."""
        n = self.spatial
        counts = tuple(
            window_count(size, self.kernel[i], self.strides[i], self.dilations[i],
                         (self.pads[i], self.pads[n + i]), self.auto_pad,
                         ceil_mode=self.ceil_mode or self._exceeds(size, i))
            for i, size in enumerate(sizes)
        )  # fmt: skip
        fits = all(isinstance(count, str) or count >= 0 for count in counts)
        self.require(fits, "C3", f"a kernel of {self.kernel} on sizes {tuple(sizes)}")
        return counts

    def _exceeds(self, size: Dim, axis: int) -> bool:
        """Whether the kernel is larger than the data: then one window reaches beyond the padding.

        The division of onnxruntime and of onnx's shape inference goes towards zero.
        """
        if self.auto_pad in ("SAME_UPPER", "SAME_LOWER") or not isinstance(size, int):
            return False
        n = self.spatial
        around = self.pads[axis] + self.pads[n + axis]
        return size + around <= (self.kernel[axis] - 1) * self.dilations[axis]

    def padding(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Cells before each spatial axis, then after each, for known sizes."""
        return resolve_pads(
            sizes, self.kernel, self.strides, self.dilations, self.pads, self.auto_pad
        )

    def overhang(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """How many cells the last window reaches beyond the padding, for each spatial axis."""
        n, pads, counts = self.spatial, self.padding(sizes), self.pooled(sizes)
        reaches = [
            (int(count) - 1) * self.strides[i] + (self.kernel[i] - 1) * self.dilations[i] + 1
            for i, count in enumerate(counts)
        ]
        return tuple(
            max(0, reach - size - pads[i] - pads[n + i])
            for i, (reach, size) in enumerate(zip(reaches, sizes, strict=True))
        )
