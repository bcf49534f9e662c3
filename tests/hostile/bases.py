"""The valid files that mutations start from: generated, the demo's network, small real ones."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

import intonnx
from boundaries.elementwise import ELEMENTWISE
from boundaries.matrix import MATRIX
from boundaries.movers import MOVERS
from boundaries.patterns import cases
from boundaries.pools import POOLS
from intonnx.ir.text import print_graph, weights_of
from support.chains import chain
from support.corpus import find_corpus
from support.models import Builder, u8

_TABLE = list(cases([*MATRIX, *ELEMENTWISE, *POOLS, *MOVERS]))
_SMALL = 40_000


@cache
def model(number: int) -> tuple[str, onnx.ModelProto]:
    """Base `number`, whatever the number, with its name."""
    rng = Random(number)
    kind = number % 8
    if kind < 4:
        case = rng.choice(_TABLE)
        return case.id, case.pattern.draw(case.storage, case.from_codes, number % 3)[0]
    if kind == 4:
        return "chain", chain(4)
    if kind == 5:
        return "qlinear chain", intonnx.to_onnx(intonnx.import_model(chain(5)))
    if kind == 6:
        return "bodies", bodies()
    real = real_models()
    path = real[number % len(real)]
    return path.name, onnx.load(path, load_external_data=False)


@cache
def real_models() -> list[Path]:
    """The demo's network, and the small models of the corpus where there is one."""
    found = [Path(intonnx.__file__).parent / "demo_data" / "digits_qdq.onnx"]
    folder = find_corpus()
    if isinstance(folder, Path):
        every = (path for path in folder.rglob("*.onnx") if path.stat().st_size < _SMALL)
        found += sorted(every)
    return found


def bodies() -> onnx.ModelProto:
    """An If and a Loop that read a value from outside, quantized inside."""
    build = Builder(17)
    params = u8(0.05, 128)
    value = build.dequantize(
        build.quantize(build.feed("x", (2, 3), np.float32), params, "q"), params
    )
    names = build.parameters("inner", params)
    condition = build.constant("condition", np.asarray(True))
    trips = build.constant("trips", np.asarray(3, np.int64))

    def body(op_type: str, prefix: str, read: list[str]) -> list[onnx.NodeProto]:
        result = helper.make_node(op_type, read, [f"{prefix}r"], f"{prefix}_op")
        quantize = helper.make_node("QuantizeLinear", [f"{prefix}r", *names], [f"{prefix}c"])
        back = helper.make_node("DequantizeLinear", [f"{prefix}c", *names], [f"{prefix}o"])
        return [result, quantize, back]

    def of(prefix: str, dtype: int = TensorProto.FLOAT, shape: Any = (2, 3)) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(prefix, dtype, shape)

    branches = {
        f"{name}_branch": helper.make_graph(body(op, name, [value]), name, [], [of(f"{name}o")])
        for name, op in (("then", "Relu"), ("else", "Sigmoid"))
    }
    chosen = build.node("If", [condition], **branches)
    turn = body("Add", "turn", ["carried", value])
    turn.append(helper.make_node("Identity", ["going"], ["on"]))
    graph = helper.make_graph(
        turn, "turn",
        [of("index", TensorProto.INT64, ()), of("going", TensorProto.BOOL, ()), of("carried")],
        [of("on", TensorProto.BOOL, ()), of("turno")],
    )  # fmt: skip
    build.output(build.node("Loop", [trips, condition, chosen], body=graph), np.float32)
    return build.model()


@cache
def text(number: int) -> tuple[str, str, bytes]:
    """The text form of base `number` with its name, and its arrays as .npz."""
    name, graph = _graph(number)
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **weights_of(graph))  # pyright: ignore
    return name, print_graph(graph), stream.getvalue()


@cache
def saved(number: int, folder: Path) -> tuple[str, bytes]:
    """Base `number` as a saved graph, with its name."""
    name, graph = _graph(number)
    path = folder / "base.intonnx"
    graph.save(path)
    return name, path.read_bytes()


def _graph(number: int) -> tuple[str, intonnx.Graph]:
    kind = (4, 5, 6, 0, 1)[number % 5]
    name, proto = model(kind + 8 * number)
    return name, intonnx.import_model(proto)
