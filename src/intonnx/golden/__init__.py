"""Golden vectors: what hardware and firmware projects check their own arithmetic against."""

from .header import write_header as write_header
from .hexadecimal import write_hex as write_hex

__all__ = ["write_header", "write_hex"]
