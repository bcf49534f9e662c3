"""Attacks that random damage does not find: bombs, cycles, depth, length, other people's files."""

from __future__ import annotations

import io
import itertools
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from intonnx.ir.archive import MAX_TEXT
from support.models import Builder, u8

from .cases import Case

_IMPORTS = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]


def crafted_models() -> Iterator[Case]:
    """ONNX models."""
    for depth in (20, 100, 1000):
        yield Case(f"{depth} nested Ifs", "model.onnx", _nested(depth))
    yield _of("a long chain", _chain(2_000))
    yield _of("a function that calls itself", _recursive(1))
    yield _of("functions that call each other", _recursive(2))
    yield _of("a wide node", _wide(50_000))
    yield from (_of(name, model) for name, model in _bombs())
    yield from _external()


def crafted_graphs(saved: bytes) -> Iterator[Case]:
    """Saved graphs, made from a good one."""
    with zipfile.ZipFile(io.BytesIO(saved)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(parts["manifest.json"])

    def of(name: str, changed: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> Case:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for member, data in {**parts, **changed}.items():
                archive.writestr(member, data, method if member in changed else None)
        return Case(name, "graph.intonnx", stream.getvalue())

    bomb = b" " * (MAX_TEXT + 1)
    yield of("a bomb of text", {"graph.txt": bomb}, zipfile.ZIP_DEFLATED)
    yield of("compressed arrays", {"arrays.npz": parts["arrays.npz"]}, zipfile.ZIP_DEFLATED)
    yield of("a deep manifest", {"manifest.json": b"[" * 200_000})
    yield of("a deep text", {"graph.txt": b"(" * 200_000})
    yield of("a newer version", {"manifest.json": json.dumps({**manifest, "version": 2}).encode()})
    yield of("a member outside", {"../outside": b"x"})
    yield of("a second member", {"graph.txt ": b"x"})
    huge = parts["graph.txt"].replace(b"[", b"[1099511627776, ", 1)
    yield of("a huge shape", {"graph.txt": huge})


def _of(name: str, model: onnx.ModelProto) -> Case:
    return Case(name, "model.onnx", model.SerializeToString())


def _model(nodes: list[onnx.NodeProto], **constants: Any) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "attack",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 3))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=_IMPORTS, ir_version=9)


def _nested(depth: int) -> bytes:
    """An If in an If: written as bytes, for protobuf itself copies no more than 100 levels."""
    value = helper.make_tensor_value_info
    read = onnx.AttributeProto.GRAPH
    inner = helper.make_node("Relu", ["x"], ["v0"]).SerializeToString()
    for level in range(1, depth + 1):
        node = onnx.NodeProto(op_type="If", input=["c"], output=[f"v{level}"], name=f"if{level}")
        other = [helper.make_node("Identity", ["x"], [f"e{level}"])]
        graph = helper.make_graph(other, "e", [], [value(f"e{level}", TensorProto.FLOAT, (2, 3))])
        node.attribute.add(name="else_branch", type=read).g.CopyFrom(graph)
        before = value(f"v{level - 1}", TensorProto.FLOAT, (2, 3))
        then = helper.make_graph([], "t", [], [before]).SerializeToString() + _field(1, inner)
        attribute = onnx.AttributeProto(name="then_branch", type=read).SerializeToString()
        inner = node.SerializeToString() + _field(5, attribute + _field(6, then))
    model = _model([helper.make_node("Identity", [f"v{depth}"], ["y"])], c=True)
    last = model.graph.node[0].SerializeToString()
    del model.graph.node[:]
    graph_bytes = model.graph.SerializeToString() + _field(1, inner) + _field(1, last)
    model.ClearField("graph")
    return model.SerializeToString() + _field(7, graph_bytes)


def _field(number: int, data: bytes) -> bytes:
    """A field with a length, as protobuf writes it."""
    size, length = len(data), bytearray()
    while size >= 0x80:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return bytes([number << 3 | 2]) + bytes(length) + data


def _chain(count: int) -> onnx.ModelProto:
    names = ["x", *(f"v{index}" for index in range(count - 1)), "y"]
    pairs = itertools.pairwise(names)
    return _model([onnx.NodeProto(op_type="Relu", input=[a], output=[b]) for a, b in pairs])


def _wide(count: int) -> onnx.ModelProto:
    return _model([helper.make_node("Concat", ["x"] * count, ["y"], axis=0)])


def _recursive(count: int) -> onnx.ModelProto:
    model = _model([helper.make_node("F0", ["x"], ["y"], domain="local")])
    for index in range(count):
        call = helper.make_node(f"F{(index + 1) % count}", ["a"], ["b"], domain="local")
        model.functions.append(
            helper.make_function("local", f"F{index}", ["a"], ["b"], [call], _IMPORTS)
        )
    return model


def _bombs() -> Iterator[tuple[str, onnx.ModelProto]]:
    """A few bytes that ask for a terabyte, of floats and of codes, constant and when it runs."""
    big = np.asarray([2**20, 2**20], np.int64)
    make = helper.make_node
    zero = numpy_helper.from_array(np.zeros(1, np.float32))
    yield (
        "a constant of a shape",
        _model([make("ConstantOfShape", ["n"], ["y"], value=zero)], n=big),
    )
    yield (
        "a range",
        _model(
            [make("Range", ["a", "b", "d"], ["y"])],
            a=np.float32(0),
            b=np.float32(1e12),
            d=np.float32(1),
        ),
    )
    amounts = np.asarray([0, 0, 2**40, 0], np.int64)
    for name, op, operand in (
        ("Expand", "Expand", np.asarray([2**20, 2**20, 1, 1], np.int64)),
        ("Tile", "Tile", np.asarray([2**20, 2**20], np.int64)),
        ("Pad", "Pad", amounts),
    ):
        yield f"{name} of floats", _model([make(op, ["x", "n"], ["y"])], n=operand)
        yield f"{name} of a constant", _model([make(op, ["c", "n"], ["y"])], n=operand,
                                              c=np.ones((2, 3), np.float32))  # fmt: skip
        yield f"{name} of codes", _quantized(op, operand)
    sizes = np.asarray([1, 1, 2**20, 2**20], np.int64)
    yield "Resize of codes", _quantized("Resize", sizes, shape=(1, 1, 2, 2), between=["", ""])
    kernel = np.ones((1, 1, 1, 1), np.float32)
    yield "padding of a Conv", _quantized("Conv", kernel, (1, 1, 2, 2), pads=[2**30] * 4)
    window = {"kernel_shape": [2**31, 2**31], "pads": [2**30] * 4}
    yield "padding of a pool", _quantized("AveragePool", None, (1, 1, 2, 2), **window)
    yield "depth to space", _quantized("DepthToSpace", None, (1, 4, 2, 2), blocksize=2**31)
    yield "a one hot", _model(
        [make("Cast", ["x"], ["i"], to=TensorProto.INT64), make("OneHot", ["i", "d", "v"], ["y"])],
        d=np.int64(2**40), v=np.asarray([0, 1], np.float32),
    )  # fmt: skip
    yield "a table of all bits", _quantized("CumSum", np.asarray(2**62, np.int64))


def _quantized(
    op: str, operand: Any, shape: tuple[int, ...] = (2, 3), between: tuple[str, ...] | Any = (),
    **attributes: Any,
) -> onnx.ModelProto:  # fmt: skip
    build = Builder(19)
    params = u8(0.05, 128)
    value = build.dequantize(build.quantize(build.feed("x", shape, np.float32), params), params)
    operands = [value, *between]
    if operand is not None:
        operands.append(build.constant("n", operand))
    result = build.node(op, operands, **attributes)
    build.output(build.dequantize(build.quantize(result, params), params, "y"), np.float32)
    return build.model(infer=False)


def _external() -> Iterator[Case]:
    """Weights that lie in files which are not the model's."""
    for location in ("../secret", "/etc/hostname", "link", "a/../../secret", "folder", "\x00", "",
                     "loop", "/dev/zero", "short", "a" * 5000):  # fmt: skip
        model = _model([helper.make_node("Add", ["x", "w"], ["y"])], w=np.ones(3, np.float32))
        tensor = model.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        links = {"link": "/etc/hostname", "loop": "loop", "folder": "."}
        yield Case(f"external data at {location[:20]!r}", "model.onnx", model.SerializeToString(),
                   {"short": b"1234"}, links)  # fmt: skip
