"""IR graphs for tests: one small one with its text, and strategies for odd ones of all kinds."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import hypothesis.strategies as st
import numpy as np

from intonnx.ir.graph import Graph, Node, Refusal, Source
from intonnx.ir.ops.conv import Conv2d
from intonnx.ir.ops.onnx_op import OnnxOp, Opaque
from intonnx.ir.ops.quantize import Quantize, Requantize
from intonnx.ir.rewriter import Rewriter
from intonnx.ir.text import parse, weights_of
from intonnx.ir.types import Array, Dim, DType, QuantParams, TensorType, plain, quantized
from intonnx.ir.verify import verify

ODD_NAMES = (
    'quote"', "back\\slash", "new\nline", "tab\t", "sp ace", "/a/b/Conv_output_0", "x:0", "größe",
    "\U0001f600", "\ud800", "\x00", "_", "1", "-", "s1", "z1", "const", "graph", "} scales {",
    "\nscales {", "// no comment", "%x", "@x", "inf", "nan", "q<u8", "\u2028", "'", "float",
)  # fmt: skip
"""Names that a careless text form would not read back."""

odd_text = st.sampled_from(ODD_NAMES) | st.text(max_size=6)
names = (odd_text | st.from_regex(r"[a-z][a-z0-9_.]{0,6}", fullmatch=True)).filter(bool)
symbols = st.sampled_from(["N", "batch size", "?", "*", "inf", "3", "", "seq-1"]) | st.text(
    max_size=3
)
float32s = st.floats(width=32, allow_nan=False)
tensor_dtypes = st.sampled_from([dtype for dtype in DType if dtype is not DType.CONTAINER])
integer_dtypes = st.sampled_from([dtype for dtype in DType if dtype.is_integer])
words = st.builds(Source, op=names, name=odd_text)


def shapes(*, fixed: bool = False) -> st.SearchStrategy[tuple[Dim, ...]]:
    """Shapes up to rank 3; with `fixed` without symbols."""
    sizes: st.SearchStrategy[Dim] = st.integers(0, 4)
    if not fixed:
        sizes = sizes | symbols
    return st.lists(sizes, max_size=3).map(tuple)


@st.composite
def arrays(draw: st.DrawFn, dtype: DType, shape: tuple[int, ...]) -> Array:
    """An array of any bits that the element type allows, NaN of every kind among them."""
    count = math.prod(shape)
    if dtype is DType.STRING:
        found = np.empty(count, np.object_)
        found[:] = draw(st.lists(odd_text, min_size=count, max_size=count))
    elif dtype is DType.BOOL or (dtype.is_integer and dtype.bits < 8):
        low, high = (0, 1) if dtype is DType.BOOL else (dtype.low, dtype.high)
        listed = draw(st.lists(st.integers(low, high), min_size=count, max_size=count))
        found = np.array(listed, np.int64).astype(dtype.numpy)
    else:
        size = count * dtype.numpy.itemsize
        data = draw(st.binary(min_size=size, max_size=size))
        # float4 keeps its four bits in a byte.
        if dtype is DType.F4E2M1:
            data = bytes(byte & 15 for byte in data)
        found = np.frombuffer(data, dtype.numpy)
    return found.reshape(shape)


def limited(array: Array, kind: TensorType) -> Array:
    """The array with codes in the range that the type says."""
    if kind.quant is None or not kind.quant.is_narrow:
        return array
    low, high = (kind.dtype.numpy.type(limit) for limit in (kind.quant.qmin, kind.quant.qmax))
    return np.clip(array, low, high)


@st.composite
def quant_params(draw: st.DrawFn, shape: tuple[Dim, ...] | None) -> QuantParams:
    """Parameters that fit a shape: per tensor, per axis or blocked; long and short lists."""
    storage = draw(integer_dtypes)
    axis = draw(st.integers(0, len(shape) - 1)) if shape and draw(st.booleans()) else None
    block = draw(st.none() | st.integers(1, 3)) if axis is not None else None
    sizes: tuple[int, ...] = ()
    if axis is not None and shape:
        known = [size if isinstance(size, int) else draw(st.integers(0, 6)) for size in shape]
        sizes = (known[axis],)
        if block is not None:
            known[axis] = -(-known[axis] // block)
            sizes = tuple(known)
    count = math.prod(sizes)
    scale = st.floats(2.0**-149, 2.0**127, width=32)
    zero = st.integers(max(storage.low, -(2**63)), min(storage.high, 2**63 - 1))
    if draw(st.booleans()):
        zero = st.just(draw(zero))
    low = draw(st.none() | st.integers(storage.low, storage.high))
    return QuantParams(
        storage=storage,
        scale=np.reshape(draw(st.lists(scale, min_size=count, max_size=count)), sizes),
        zero_point=np.reshape(draw(st.lists(zero, min_size=count, max_size=count)), sizes),
        axis=axis,
        block=block,
        expressed=draw(st.sampled_from([DType.F32, DType.F16, DType.BF16, DType.F64])),
        low=low,
        high=draw(st.none() | st.integers(low or storage.low, storage.high)) if low else None,
    )


@st.composite
def types(draw: st.DrawFn, *, fixed: bool = False) -> TensorType:
    """Types of all kinds; with `fixed` those that an array can have."""
    shape = draw(shapes(fixed=fixed) if fixed else st.none() | shapes())
    if not fixed and draw(st.integers(0, 9)) == 0:
        container = draw(st.none() | st.sampled_from(["seq(tensor(float))", 'map("a")']))
        return TensorType(dtype=DType.CONTAINER, shape=shape, container=container)
    if draw(st.booleans()):
        params = draw(quant_params(shape))
        return TensorType(dtype=params.storage, shape=shape, quant=params)
    return TensorType(dtype=draw(tensor_dtypes), shape=shape)


def attribute_values() -> st.SearchStrategy[Any]:
    """What an ONNX attribute may hold."""
    opaque = st.builds(
        Opaque, what=st.sampled_from(["graph", "sp ace"]), data=st.binary(max_size=4)
    )
    single: list[st.SearchStrategy[Any]] = [
        st.integers(-(2**63), 2**63 - 1), float32s, odd_text, st.binary(max_size=4), st.booleans(),
    ]  # fmt: skip
    lists = [st.lists(one, min_size=1, max_size=3).map(tuple) for one in single]
    return st.one_of(*single, *lists, opaque)


@st.composite
def onnx_nodes(draw: st.DrawFn, known: list[str], results: tuple[str, ...]) -> Node:
    """A node that the IR does not model, with any attributes, captures and absent values."""
    operands = draw(st.lists(st.sampled_from(["", *known]), max_size=4))
    op = OnnxOp(
        op_type=draw(st.sampled_from(["Conv", "If", "odd.name", "sp ace", "größe"])),
        domain=draw(st.sampled_from(["", "com.microsoft", "ai.onnx", ".", "do main"])),
        version=draw(st.integers(1, 30)),
        attributes=draw(st.dictionaries(st.sampled_from(["axis", "types", "o d"]) | names,
                                        attribute_values(), max_size=3)),
        types=tuple(draw(types()) for _ in range(len(results) + draw(st.integers(0, 1)))),
        captures=draw(st.integers(0, len(operands))),
    )  # fmt: skip
    refusal = draw(st.none() | st.builds(Refusal, code=names, detail=odd_text))
    return Node(op, tuple(operands), results, tuple(draw(st.lists(words, max_size=2))), refusal)


def _declared(kind: TensorType, vague: bool) -> TensorType:
    if not vague or kind.shape is None:
        return kind
    return kind.with_shape(["?"] * len(kind.shape))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | odd_text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(odd_text, inner, max_size=2),
    max_leaves=4,
)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A graph that passes `verify`."""
    pool = iter(draw(st.lists(names, min_size=12, max_size=12, unique=True)))
    inputs = [next(pool) for _ in range(draw(st.integers(0, 3)))]
    declared = {name: draw(types()) for name in inputs}
    defaults: dict[str, Array] = {}
    for name in inputs:
        kind = declared[name]
        if kind.dtype is not DType.CONTAINER and draw(st.booleans()):
            shape = tuple(
                size if isinstance(size, int) else 2
                for size in ((3, 4) if kind.shape is None else kind.shape)
            )
            defaults[name] = limited(draw(arrays(kind.dtype, shape)), kind)
    constants: dict[str, Array] = {}
    for name in [next(pool) for _ in range(draw(st.integers(0, 3)))]:
        kind = declared[name] = draw(types(fixed=True))
        constants[name] = limited(draw(arrays(kind.dtype, kind.shape)), kind)  # type: ignore[arg-type]
    nodes: list[Node] = []
    for _ in range(draw(st.integers(0, 3))):
        if draw(st.booleans()) and (floats := [n for n, t in declared.items() if t.dtype.is_float]):
            operand, result = draw(st.sampled_from(floats)), next(pool)
            op = Quantize(out=draw(quant_params(declared[operand].shape)))
            nodes.append(Node(op, (operand,), (result,)))
            (declared[result],) = op.infer([declared[operand]])
            continue
        results = tuple(next(pool) if draw(st.booleans()) else "" for _ in range(2))
        results = results[: draw(st.integers(0, 2))]
        node = draw(onnx_nodes(list(declared), results))
        nodes.append(node)
        for result, kind in zip(results, node.op.infer([None] * 9), strict=False):
            if result:
                declared[result] = _declared(kind, draw(st.booleans()))
    return Graph(
        name=draw(odd_text),
        inputs=tuple(inputs),
        outputs=tuple(
            draw(st.lists(st.sampled_from(list(declared)), max_size=3)) if declared else ()
        ),
        nodes=tuple(nodes),
        types=declared,
        constants=constants,
        defaults=defaults,
        folded=tuple(draw(st.lists(words, max_size=2))),
        metadata=draw(st.dictionaries(odd_text, json_values, max_size=2)),
    )


SMALL = """\
graph @net(%image: f32[N,3,8,8]) -> (%logits: f32[N,5,4,4]) {
  const @conv1.weight : q<i8, @s1 axis=0>[5,3,1,1]
  const @b : i32[5] = [1, -2, 3, 0, 5]
  %0 = qnn.quantize(%image) : q<u8, 0.0186584:114>[N,3,8,8] from QuantizeLinear q0
  %1 = qnn.conv2d(%0, @conv1.weight, @b) {strides=[2, 2], pads=[0, 0, 0, 0], dilations=[1, 1]} \
: q<i32, @s2 axis=1>[N,5,4,4] from Conv conv1, Relu "re lu"
  %2 = qnn.requantize(%1) : q<u8, 0.0235285:0>[N,5,4,4]
  %logits = onnx.com.microsoft.Foo<1>(%2, _) captures(%0) {alpha=0.1, then=opaque<graph> "AAE="} \
: f32[N,5,4,4] float because no-integer-form "no rule for \\"Foo\\""
}
folded {
  Identity id1
}
scales {
  @s1 : f32[5] = [0.25, 0.5, 1.0, 2.0, 4.0]
  @s2 : f32[5] = [0.0046646, 0.0093292, 0.0186584, 0.0373168, 0.0746336]
}
metadata {"opset": 21}
"""


def small() -> Graph:
    """The graph of `SMALL`."""
    weight = QuantParams(storage=DType.I8, scale=[0.25, 0.5, 1, 2, 4], zero_point=[0] * 5, axis=0)
    image = plain(DType.F32, ("N", 3, 8, 8))
    rewriter = Rewriter(
        Graph(
            name="net",
            inputs=("image",),
            outputs=("logits",),
            nodes=(),
            types={"image": image},
            folded=(Source(op="Identity", name="id1"),),
            metadata={"opset": 21},
        )
    )
    codes = np.arange(15, dtype=np.int8).reshape(5, 3, 1, 1)
    rewriter.add_constant("conv1.weight", codes, quantized(weight, (5, 3, 1, 1)))
    rewriter.add_constant("b", np.array([1, -2, 3, 0, 5], np.int32), plain(DType.I32, (5,)))
    sources = [Source(op="Conv", name="conv1"), Source(op="Relu", name="re lu")]
    first = QuantParams(storage=DType.U8, scale=0.0186584, zero_point=114)
    rewriter.emit(
        Quantize(out=first), ["image"], ["0"], sources=[Source(op="QuantizeLinear", name="q0")]
    )
    conv = Conv2d(strides=(2, 2), pads=(0, 0, 0, 0), dilations=(1, 1))
    rewriter.emit(conv, ["0", "conv1.weight", "b"], ["1"], sources=sources)
    out = QuantParams(storage=DType.U8, scale=0.0235285, zero_point=0)
    rewriter.emit(Requantize(out=out), ["1"], ["2"])
    foo = OnnxOp(
        op_type="Foo",
        domain="com.microsoft",
        version=1,
        attributes={"alpha": 0.1, "then": Opaque(what="graph", data=b"\0\1")},
        types=(plain(DType.F32, ("N", 5, 4, 4)),),
        captures=1,
    )
    rewriter.emit(foo, ["2", "", "0"], ["logits"])
    last = rewriter.node_ids()[-1]
    refusal = Refusal(code="no-integer-form", detail='no rule for "Foo"')
    rewriter.update(last, dataclasses.replace(rewriter.node(last), refusal=refusal))
    return rewriter.finish()


def again(graph: Graph) -> Graph:
    """The graph that its text gives; asserts that it is equal to this one."""
    verify(graph)
    text = str(graph)
    found = parse(text, weights=weights_of(graph))
    assert found == graph
    assert str(found) == text
    assert parse(text, weights=graph.constants) == graph
    return found
