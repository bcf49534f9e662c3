"""Layer by layer against the float model that a quantized one was made from.

Each paired value is compared twice: as the integer run has it, with all that was lost before, and
as its operator alone makes it from the float model's own values, quantized.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from intonnx.ir.errors import IntonnxError
from intonnx.ir.graph import Graph
from intonnx.ir.quantization import quantize_array
from intonnx.ir.types import Array, Record, TensorType
from intonnx.lowering.executable import compile_graph

from . import runtime
from .operators import Operators
from .pairing import has_codes, paired
from .remedies import Remedy, remedies_for
from .statistics import Sums, real, real_sums, saturated

Inputs = Mapping[str, Array]
_NONE = Sums()


class Layer(Record):
    """One value beside that of the float model.

    Attributes:
        value: the value's name here.
        float_value: its name in the float model.
        node: the operator that makes it, as errors name it.
        sqnr: in dB, of the whole integer run; None where nothing differs.
        own_sqnr: in dB, of this operator alone on the float model's values, quantized.
        quantizer_sqnr: in dB, of the float model's own value when it is only quantized: what the
            operator's weights and operands lose is beside it.
        cosine: of the whole run; None where one side is zero.
        saturation: the share of codes at an end of their range that is not zero.
        remedies: changes that were tried, for the layers that lose most.
    """

    value: str
    float_value: str
    node: str
    sqnr: float | None
    own_sqnr: float | None
    quantizer_sqnr: float | None
    cosine: float | None
    saturation: float
    remedies: tuple[Remedy, ...] = ()


class FloatComparison(Record):
    """The comparison with a float model.

    Attributes:
        layers: the paired values, in graph order.
        unpaired: how many values that are codes have no pair.
    """

    layers: tuple[Layer, ...]
    unpaired: int

    def worst(self, count: int) -> list[Layer]:
        """The layers that lose most by themselves, the worst first."""
        losing = [layer for layer in self.layers if layer.own_sqnr is not None]
        return sorted(losing, key=lambda layer: layer.own_sqnr or 0.0)[:count]


def compare_with_float(
    graph: Graph,
    original: onnx.ModelProto | None,
    float_graph: Graph,
    float_model: onnx.ModelProto,
    samples: Sequence[Inputs],
    *,
    explained: int = 5,
) -> FloatComparison:
    """Compare a quantized graph with the float model that it was made from.

    Args:
        graph: the quantized graph.
        original: the model that it was imported from, whose quantizers tell the float names.
        float_graph: the float model, imported.
        float_model: the same as it was read, with external data.
        samples: arrays for the inputs of both, one mapping for each run.
        explained: for how many of the layers that lose most remedies are tried.

    Raises:
        RunFailure, CompileFailure: one of the models cannot run on these inputs.
    """
    pairs = paired(graph, original, float_graph)
    integer, operators = compile_graph(graph, "qlinear"), Operators(graph)
    run = _runner(float_graph, float_model, pairs.values())
    tallies: defaultdict[str, _Tally] = defaultdict(_Tally)
    last: tuple[Inputs, dict[str, Array]] | None = None
    for inputs in samples:
        theirs = {**inputs, **run(inputs)}
        reals = {name: theirs[other] for name, other in pairs.items() if other in theirs}
        codes = {name: _codes(graph, name, value) for name, value in reals.items()}
        ours = integer.trace(inputs)
        for name, value in reals.items():
            if ours[name].shape == value.shape:
                tallies[name].add_run(graph.types[name], ours[name], codes[name], value)
        for pair in operators.pairs(inputs, codes):
            if pair.name in tallies and pair.ours.shape == reals[pair.name].shape:
                tallies[pair.name].add_alone(graph.types[pair.name], pair.ours, reals[pair.name])
        last = codes, reals
    layers = tuple(tally.layer(graph, name, pairs[name]) for name, tally in tallies.items())
    found = FloatComparison(layers=layers, unpaired=_unpaired(graph, pairs))
    return found if last is None else _explained(found, graph, float_graph, *last, explained)


@dataclass
class _Tally:
    """The sums of one layer over the samples: of the run, of its operator, of its quantizer."""

    whole: Sums = _NONE
    alone: Sums = _NONE
    quantizer: Sums = _NONE

    def add_run(self, kind: TensorType, ours: Array, codes: Array, wanted: Array) -> None:
        """Count our value, and that of the float model quantized, beside the float model's."""
        sums = real_sums(real(kind, ours), wanted)
        self.whole = self.whole.plus(sums._replace(saturated=saturated(kind, ours)))
        self.quantizer = self.quantizer.plus(real_sums(real(kind, codes), wanted))

    def add_alone(self, kind: TensorType, ours: Array, wanted: Array) -> None:
        """Count what the operator made of the float model's values."""
        self.alone = self.alone.plus(real_sums(real(kind, ours), wanted))

    def layer(self, graph: Graph, name: str, other: str) -> Layer:
        """What the sums say."""
        maker = graph.producers.get(name)
        return Layer(
            value=name,
            float_value=other,
            node="" if maker is None else maker.label,
            sqnr=self.whole.sqnr,
            own_sqnr=self.alone.sqnr,
            quantizer_sqnr=self.quantizer.sqnr,
            cosine=self.whole.cosine,
            saturation=self.whole.saturated / max(self.whole.elements, 1),
        )


def _explained(
    found: FloatComparison, graph: Graph, float_graph: Graph,
    codes: Inputs, reals: Inputs, count: int,
) -> FloatComparison:  # fmt: skip
    """Try remedies for the layers that lose most, on the last sample."""
    tried = {
        layer.value: remedies_for(graph, layer.value, codes, reals[layer.value], float_graph)
        for layer in found.worst(count)
    }
    layers = [
        layer.model_copy(update={"remedies": tried.get(layer.value, ())}) for layer in found.layers
    ]
    return found.model_copy(update={"layers": tuple(layers)})


def _unpaired(graph: Graph, pairs: Mapping[str, str]) -> int:
    return sum(name not in pairs and has_codes(graph, name) for name in graph.producers)


def _codes(graph: Graph, name: str, value: Array) -> Array:
    kind = graph.types[name]
    if kind.quant is None:
        return value.astype(kind.dtype.numpy)
    return quantize_array(value.astype(np.float32), kind.quant)


def _runner(
    float_graph: Graph, float_model: onnx.ModelProto, wanted: Iterable[str]
) -> Callable[[Inputs], Mapping[str, Array]]:
    """A function from inputs to values of the float model: by onnxruntime where it is installed."""
    names = set(wanted)
    if runtime.is_installed():
        try:
            return runtime.Session(float_model, also=names).run
        except IntonnxError:
            pass  # an operator that it does not have: the reference implementation is left
    return compile_graph(float_graph).trace
