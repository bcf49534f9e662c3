"""Steps of float32 arithmetic that numpy does not have: those of `intonnx.ir.float32`."""

from intonnx.ir.float32 import fused_multiply_add

__all__ = ["fused_multiply_add"]
