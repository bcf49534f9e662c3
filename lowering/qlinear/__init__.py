"""ONNX emitters: QLinear operators where they exist, DQ -> op -> Q where they do not."""

from intonnx.ir.discover import loader

load_all = loader(__name__, __path__)
