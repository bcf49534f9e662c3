"""Types of the results of com.microsoft's quantized operators: the onnx package knows none of them.

Source: the operators' documentation (ContribOperators.md of onnxruntime).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Any

import onnx

from intonnx.ir.types import UNKNOWN_DIM, Dim, DType, TensorType, plain

Shape = tuple[Dim, ...] | None


class _Call:
    """A node with the types of its inputs."""

    def __init__(self, node: onnx.NodeProto, types: Mapping[str, TensorType]) -> None:
        self._inputs = [types.get(name) if name else None for name in node.input]
        self._attributes = {
            found.name: onnx.helper.get_attribute_value(found) for found in node.attribute
        }

    def attribute(self, name: str, default: int) -> int:
        """An attribute that is a whole number."""
        return int(self._attributes.get(name, default))

    def integers(self, name: str) -> list[int]:
        """An attribute that is a list of whole numbers, empty where it is not given."""
        found: Any = self._attributes.get(name, ())
        return [int(value) for value in found]

    @property
    def count(self) -> int:
        """How many inputs there are."""
        return len(self._inputs)

    def has(self, index: int) -> bool:
        """Whether an input is given."""
        return index < len(self._inputs) and self._inputs[index] is not None

    def dtype(self, index: int) -> DType:
        """The element type of an input."""
        kind = self._inputs[index]
        assert kind is not None
        return kind.dtype

    def shape(self, index: int) -> Shape:
        """The shape of an input, None where it or the input is not known."""
        kind = self._inputs[index] if self.has(index) else None
        return None if kind is None else kind.shape


def contrib_types(node: onnx.NodeProto, types: Mapping[str, TensorType]) -> dict[str, TensorType]:
    """The types of a node's results by name; empty for other operators and malformed nodes."""
    infer = _OPERATORS.get(node.op_type)
    if infer is None or node.domain != "com.microsoft":
        return {}
    try:
        kinds = infer(_Call(node, types))
    except (IndexError, AssertionError, TypeError, ValueError):  # a malformed node has no type
        return {}
    return {name: kind for name, kind in zip(node.output, kinds, strict=False) if name}


Types = list[TensorType]


def _like_first(call: _Call) -> Types:
    return [plain(call.dtype(0), call.shape(0))]


def _dim(a: Dim, b: Dim) -> Dim:
    if a == 1 or a == b:
        return b
    if b == 1 or isinstance(b, str):
        return a if b == 1 or isinstance(a, int) else UNKNOWN_DIM
    return b


def _broadcast(*shapes: Shape) -> Shape:
    result: tuple[Dim, ...] = ()
    for shape in shapes:
        if shape is None:
            return None
        pairs = zip_longest(reversed(result), reversed(shape), fillvalue=1)
        result = tuple(reversed([_dim(a, b) for a, b in pairs]))
    return result


def _binary(call: _Call) -> Types:
    return [plain(call.dtype(0), _broadcast(call.shape(0), call.shape(3)))]


def _where(call: _Call) -> Types:
    return [plain(call.dtype(1), _broadcast(call.shape(0), call.shape(1), call.shape(4)))]


def _concat(call: _Call) -> Types:
    shapes = [call.shape(index) for index in range(2, call.count, 3)]
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return [plain(call.dtype(1), None)]
    axis, whole = call.attribute("axis", 0), list(known[0])
    sizes = [shape[axis] for shape in known]
    whole[axis] = sum(int(s) for s in sizes) if all(isinstance(s, int) for s in sizes) else "?"
    return [plain(call.dtype(1), whole)]


def _pool(call: _Call) -> Types:
    shape = call.shape(0)
    if shape is None:
        return [plain(call.dtype(0), None)]
    spatial = [UNKNOWN_DIM] * (len(shape) - 2)
    last = call.attribute("channels_last", 0)
    return [plain(call.dtype(0), (shape[0], *spatial, shape[-1]) if last
                  else (*shape[:2], *spatial))]  # fmt: skip


def _global_pool(call: _Call) -> Types:
    (kind,) = _pool(call)
    sizes = None if kind.shape is None else [1 if size == UNKNOWN_DIM else size
                                             for size in kind.shape]  # fmt: skip
    return [plain(kind.dtype, sizes)]


def _reduce_mean(call: _Call) -> Types:
    shape, keep = call.shape(0), call.attribute("keepdims", 1)
    if shape is None:
        return [plain(call.dtype(0), None)]
    axes = {axis % len(shape) for axis in call.integers("axes") or range(len(shape))}
    kept = [1 if i in axes else size for i, size in enumerate(shape) if keep or i not in axes]
    return [plain(call.dtype(0), kept)]


def _conv(call: _Call) -> Types:
    x, w = call.shape(0), call.shape(3)
    if x is None or w is None:
        return [plain(call.dtype(7), None)]
    spatial = [UNKNOWN_DIM] * (len(x) - 2)
    last = call.attribute("channels_last", 0)
    return [plain(call.dtype(7), (x[0], *spatial, w[0]) if last else (x[0], w[0], *spatial))]


def _gemm(call: _Call) -> Types:
    a, b = call.shape(0), call.shape(3)
    dtype = call.dtype(8) if call.has(8) else DType.F32
    if a is None or b is None:
        return [plain(dtype, None)]
    return [plain(dtype, (a[-1 if call.attribute("transA", 0) else 0],
                          b[0 if call.attribute("transB", 0) else -1]))]  # fmt: skip


def _matmul(call: _Call) -> Types:
    a, b, dtype = call.shape(0), call.shape(1), call.dtype(2)
    if a is None or b is None:
        return [plain(dtype, None)]
    rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
    lead = _broadcast(a[:-2], b[:-2])
    return [plain(dtype, None if lead is None else (*lead, *rows, *columns))]


def _matmul_nbits(call: _Call) -> Types:
    a = call.shape(0)
    columns = call.attribute("N", 0)
    return [plain(call.dtype(0), None if a is None else (*a[:-1], columns))]


def _gather_block_quantized(call: _Call) -> Types:
    data, indices = call.shape(0), call.shape(1)
    if data is None or indices is None:
        return [plain(call.dtype(2), None)]
    each = 8 // call.attribute("bits", 4) if call.dtype(0) is DType.U8 else 1
    last = data[-1]
    whole = (*data[:-1], last * each if isinstance(last, int) else UNKNOWN_DIM)
    axis = call.attribute("gather_axis", 0) % len(whole)
    return [plain(call.dtype(2), (*whole[:axis], *indices, *whole[axis + 1 :]))]


def _attention(call: _Call) -> Types:
    x, weight, past = call.shape(0), call.shape(1), call.shape(8)
    dtype, heads = call.dtype(2), call.attribute("num_heads", 1)
    if x is None or weight is None or not isinstance(weight[1], int):
        return [plain(dtype, None)] * 2
    hidden = weight[1] // 3
    before = 0 if not call.has(8) else past[3] if past is not None else UNKNOWN_DIM
    known = isinstance(before, int) and isinstance(x[1], int)
    length: Dim = int(before) + int(x[1]) if known else UNKNOWN_DIM
    present = (2, x[0], heads, length, hidden // heads)
    return [plain(dtype, (x[0], x[1], hidden)), plain(dtype, present)]


def _lstm(call: _Call) -> Types:
    x, r, dtype = call.shape(0), call.shape(2), call.dtype(0)
    if x is None or r is None:
        return [plain(dtype, None)] * 3
    state = (r[0], x[1], r[1])
    return [plain(dtype, (x[0], *state)), plain(dtype, state), plain(dtype, state)]


def _embedding(call: _Call) -> Types:
    ids, words = call.shape(0), call.shape(2)
    real = None if ids is None or words is None else (*ids, words[1])
    return [plain(call.dtype(8), real), plain(DType.I32, None if ids is None else ids[:1])]


_OPERATORS: dict[str, Callable[[_Call], Types]] = {
    **dict.fromkeys(("QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"), _like_first),
    "QLinearAdd": _binary,
    "QLinearMul": _binary,
    "QLinearWhere": _where,
    "QLinearConcat": _concat,
    "QLinearAveragePool": _pool,
    "QLinearGlobalAveragePool": _global_pool,
    "QLinearReduceMean": _reduce_mean,
    "QLinearConv": _conv,
    "QGemm": _gemm,
    "MatMulIntegerToFloat": _matmul,
    "DynamicQuantizeMatMul": _matmul,
    "MatMulNBits": _matmul_nbits,
    "GatherBlockQuantized": _gather_block_quantized,
    "QAttention": _attention,
    "DynamicQuantizeLSTM": _lstm,
    "QEmbedLayerNormalization": _embedding,
}
