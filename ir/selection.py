"""What the operators share whose every result is one of the values given to them."""

from __future__ import annotations

from collections.abc import Sequence

from .op import Op
from .types import Dim, QuantParams, TensorType, plain, quantized


class Selection(Op):
    """Each element of the result is an element of an operand; so it commutes with quantization.

    Either the operands are quantized and the result has the parameters `out`: an operand with just
    these is used as it is, any other is dequantized and quantized. Or all hold plain integers of
    one type, `out` is None, and so does the result.
    """

    out: QuantParams | None

    def selected(
        self, kinds: Sequence[TensorType], shape: Sequence[Dim] | None, constraint: str
    ) -> TensorType:
        """The type of the result in this shape.

        Raises TypeFailure with the constraint's number unless the operands are all quantized per
        tensor with codes of 16 bits or fewer and `out` is per tensor, or `out` is None and all are
        plain integers of one type.
        """
        if self.out is not None:
            self.require(self.out.per_tensor, constraint, "the result is per axis")
            for kind in kinds:
                given = kind.quant is not None and kind.quant.per_tensor and kind.dtype.bits <= 16
                cause = f"an operand is {kind.dtype}, not quantized per tensor"
                self.require(given, constraint, cause)
            return quantized(self.out, shape)
        same = all(kind.quant is None and kind.dtype is kinds[0].dtype for kind in kinds)
        self.require(same and kinds[0].is_integer, constraint, "operands of several types")
        return plain(kinds[0].dtype, shape)
