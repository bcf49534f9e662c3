"""Golden vectors: what hardware and firmware projects check their own arithmetic against."""

from .hexadecimal import write_hex as write_hex

__all__ = ["write_hex"]
