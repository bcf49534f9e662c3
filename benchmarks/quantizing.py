"""Networks quantized by onnxruntime's own tool, in the six usual ways."""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from networks import NETWORKS
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_static,
)


class Way(NamedTuple):
    """How the tool is told to quantize."""

    form: QuantFormat
    activation: QuantType
    weight: QuantType
    per_channel: bool = False
    symmetric: bool = False


WAYS = {
    "qdq-u8": Way(QuantFormat.QDQ, QuantType.QUInt8, QuantType.QInt8, per_channel=True),
    "qdq-s8": Way(QuantFormat.QDQ, QuantType.QInt8, QuantType.QInt8),
    "qdq-s8-symmetric": Way(
        QuantFormat.QDQ, QuantType.QInt8, QuantType.QInt8, per_channel=True, symmetric=True
    ),
    "qoperator-u8": Way(QuantFormat.QOperator, QuantType.QUInt8, QuantType.QInt8),
    "qoperator-u8-u8": Way(QuantFormat.QOperator, QuantType.QUInt8, QuantType.QUInt8),
    "qoperator-s8": Way(QuantFormat.QOperator, QuantType.QInt8, QuantType.QInt8, per_channel=True),
}


class _Samples(CalibrationDataReader):
    def __init__(self, inputs: list[dict[str, Any]]) -> None:
        self._inputs = iter(inputs)

    def get_next(self) -> Any:
        return next(self._inputs, None)


def sample(model: onnx.ModelProto, seed: int = 0) -> dict[str, Any]:
    """One random input."""
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    return {"x": np.random.default_rng(seed).standard_normal(shape).astype(np.float32)}


def quantized(network: str, way: str, folder: Path) -> Path:
    """The file of the quantized network in `folder`; it is made when it is not there yet."""
    path = folder / f"{network}-{way}.onnx"
    if path.exists():
        return path
    model, how = NETWORKS[network](), WAYS[way]
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        source = Path(scratch) / "float.onnx"
        onnx.save(model, source)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                quantize_static(
                    source,
                    path,
                    _Samples([sample(model, seed) for seed in range(2)]),
                    quant_format=how.form,
                    activation_type=how.activation,
                    weight_type=how.weight,
                    per_channel=how.per_channel,
                    extra_options={"ActivationSymmetric": how.symmetric},
                )
        finally:
            logging.disable(logging.NOTSET)
    return path
