"""Sums of products over named axes, as matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.einsum import Equation
from intonnx.ir.ops.einsum import Einsum
from intonnx.ir.types import Array, QuantParams
from intonnx.lowering.reductions import largest_code

from .exact import exact_dtype, product_of_unknown
from .kernel import Context, Kernel, kernels


@kernels.register(Einsum)
def einsum(op: Einsum, context: Context) -> Kernel:
    """One operand is added up; two are a batch of matrix products, exact in the BLAS chosen."""
    kinds = [kind for kind in context.operands if kind is not None]
    equation = op.expanded(kinds)
    params = [kind.params for kind in kinds]
    if len(kinds) == 1:
        return lambda operands: (_added(equation, operands[0], params[0]),)
    product = _Product(equation, params)
    return lambda operands: (product.run(operands[0], operands[1]),)


def _added(equation: Equation, codes: Array, params: QuantParams) -> Array:
    values = _centred(codes, params, np.dtype(np.int64))
    return np.asarray(np.einsum(f"{equation.operands[0]}->{equation.result}", values))


class _Product:
    """A product of two operands as a batch of matrix products.

    `batch` are the axes of both operands and the result, `shared` of both but not the result,
    `rows` and `columns` of one operand and the result. What else one has is added up before.
    """

    def __init__(self, equation: Equation, params: Sequence[QuantParams]) -> None:
        a, b = equation.operands
        self.params = params
        self.equation = equation
        self.batch = "".join(x for x in equation.result if x in a and x in b)
        self.rows = "".join(x for x in equation.result if x not in b)
        self.columns = "".join(x for x in equation.result if x not in a)
        self.shared = "".join(x for x in dict.fromkeys(a) if x in b and x not in equation.result)

    def run(self, a: Array, b: Array) -> Array:
        left, right = self.equation.operands
        sizes = self.equation.sizes([a.shape, b.shape])
        counts = [self._added_up(term, sizes) for term in (left, right)]
        largest = [largest_code(p) * n for p, n in zip(self.params, counts, strict=True)]
        shared, rows, columns = (
            [int(sizes[letter]) for letter in letters]
            for letters in (self.shared, self.rows, self.columns)
        )
        multiply, dtype = product_of_unknown(math.prod(shared), *largest)
        x, y = (
            _centred(codes, params, np.result_type(dtype, exact_dtype(bound)))
            for codes, params, bound in zip((a, b), self.params, largest, strict=True)
        )
        x = np.einsum(f"{left}->{self.batch}{self.rows}{self.shared}", x)
        y = np.einsum(f"{right}->{self.batch}{self.shared}{self.columns}", y)
        lead = len(self.batch)
        # A shared axis of size 1 stands for any size.
        x = np.broadcast_to(x, (*x.shape[:lead], *rows, *shared))
        y = np.broadcast_to(y, (*y.shape[:lead], *shared, *columns))
        sums = multiply(
            x.reshape(*x.shape[:lead], math.prod(rows), math.prod(shared)),
            y.reshape(*y.shape[:lead], math.prod(shared), math.prod(columns)),
        )
        found = sums.reshape((*sums.shape[:-2], *rows, *columns))
        order = self.batch + self.rows + self.columns
        return found.transpose([order.index(letter) for letter in self.equation.result])

    def _added_up(self, term: str, sizes: dict[str, Any]) -> int:
        """How many elements of an operand are added up before the product."""
        kept = self.batch + self.rows + self.columns + self.shared
        return math.prod(int(sizes[letter]) for letter in set(term) if letter not in kept)


def _centred(codes: Array, params: QuantParams, dtype: np.dtype[Any]) -> Array:
    """A new array of codes less their zero points, which broadcast."""
    values: Array = codes.astype(dtype)
    zero = params.zero_along(codes.ndim)
    if np.any(zero):
        values -= zero.astype(dtype)
    return values
