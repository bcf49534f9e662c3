"""Identity: the same array."""

from __future__ import annotations

from intonnx.ir.ops.identity import Identity

from .kernel import Context, Kernel, kernels


@kernels.register(Identity)
def identity(op: Identity, context: Context) -> Kernel:
    """Nothing to do at run time."""
    return lambda operands: (operands[0],)
