"""IR to something that runs: integer numpy, or an ONNX graph."""

from __future__ import annotations
