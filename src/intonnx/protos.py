"""ONNX protobuf records and the IR: element types, tensors, types and nodes, both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, TypeProto, numpy_helper

from intonnx.ir.errors import ModelFailure
from intonnx.ir.graph import Node, bodies_of
from intonnx.ir.ops.onnx_op import Attribute, OnnxOp, Opaque
from intonnx.ir.types import UNKNOWN_DIM, Array, Dim, DType, TensorType, plain

_DTYPES: dict[str, DType] = {
    "FLOAT": DType.F32,
    "DOUBLE": DType.F64,
    "FLOAT16": DType.F16,
    "BFLOAT16": DType.BF16,
    "UINT2": DType.U2,
    "INT2": DType.I2,
    "UINT4": DType.U4,
    "INT4": DType.I4,
    "UINT8": DType.U8,
    "INT8": DType.I8,
    "UINT16": DType.U16,
    "INT16": DType.I16,
    "UINT32": DType.U32,
    "INT32": DType.I32,
    "UINT64": DType.U64,
    "INT64": DType.I64,
    "BOOL": DType.BOOL,
    "STRING": DType.STRING,
    "COMPLEX64": DType.C64,
    "COMPLEX128": DType.C128,
    "FLOAT8E4M3FN": DType.F8E4M3FN,
    "FLOAT8E4M3FNUZ": DType.F8E4M3FNUZ,
    "FLOAT8E5M2": DType.F8E5M2,
    "FLOAT8E5M2FNUZ": DType.F8E5M2FNUZ,
    "FLOAT8E8M0": DType.F8E8M0,
    "FLOAT4E2M1": DType.F4E2M1,
}
_ELEMENT: dict[int, DType] = {
    TensorProto.DataType.Value(name): dtype
    for name, dtype in _DTYPES.items()
    if name in TensorProto.DataType.keys()  # noqa: SIM118  (a protobuf enum is no mapping)
}
_CODE: dict[DType, int] = {dtype: code for code, dtype in _ELEMENT.items()}


def dtype_of_element(code: int) -> DType:
    """The IR's type for a TensorProto.DataType number. Raises ModelFailure for an unknown one."""
    if code not in _ELEMENT:
        raise ModelFailure(f"the element type {code} is not known")
    return _ELEMENT[code]


def element_of_dtype(dtype: DType) -> int:
    """The TensorProto.DataType number of an IR type."""
    return _CODE[dtype]


def array_of(tensor: TensorProto, base_dir: str = "") -> Array:
    """The content of a tensor; types under 8 bits come a byte an element.

    Raises ModelFailure when the data does not fit the declared type and shape.
    """
    dtype = dtype_of_element(tensor.data_type)
    try:
        array: Array = np.asarray(numpy_helper.to_array(tensor, base_dir))
    except Exception as error:  # the onnx package raises many kinds for malformed data
        raise ModelFailure(f"the tensor '{tensor.name}' cannot be read: {error}") from None
    return array.astype(dtype.numpy, copy=False)


def type_of(proto: TypeProto) -> TensorType:
    """The IR's type for an ONNX type; what is no tensor becomes a container type."""
    if proto.WhichOneof("value") != "tensor_type":
        spelling = " ".join(str(proto).split()) if proto.WhichOneof("value") else "unknown"
        return TensorType(dtype=DType.CONTAINER, shape=None, container=spelling)
    tensor = proto.tensor_type
    if tensor.elem_type == 0:
        return unknown_type()
    dtype = dtype_of_element(tensor.elem_type)
    if not tensor.HasField("shape"):
        return plain(dtype, None)
    return plain(dtype, [_dim(dim) for dim in tensor.shape.dim])


def unknown_type() -> TensorType:
    """The type of a value about which the model says nothing."""
    return TensorType(dtype=DType.CONTAINER, shape=None, container="unknown")


def _dim(dim: Any) -> Dim:
    # Some producers write -1 for a size that is not known.
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return str(dim.dim_param) or UNKNOWN_DIM


def proto_of(kind: TensorType) -> TypeProto:
    """The ONNX type of a value; container types of unknown spelling give an empty type."""
    proto = TypeProto()
    if kind.dtype is DType.CONTAINER:
        return proto
    proto.tensor_type.elem_type = element_of_dtype(kind.dtype)
    if kind.shape is not None:
        proto.tensor_type.shape.SetInParent()
        for size in kind.shape:
            dim = proto.tensor_type.shape.dim.add()
            if isinstance(size, int):
                dim.dim_value = size
            elif size != UNKNOWN_DIM:
                dim.dim_param = size
    return proto


def node_proto(node: Node) -> onnx.NodeProto:
    """An operator that the IR keeps as ONNX has it, its values under their present names.

    Bodies, which are graphs of the IR, are left out.
    """
    assert isinstance(node.op, OnnxOp)
    operands = node.operands[: len(node.operands) - node.op.captures]
    proto = onnx.helper.make_node(
        node.op.op_type, list(operands), list(node.results), domain=node.op.domain
    )
    bodies = bodies_of(node.op)
    proto.attribute.extend(
        attribute_proto(*item) for item in node.op.attributes.items() if item[0] not in bodies
    )
    return proto


def attribute_proto(name: str, value: Attribute) -> onnx.AttributeProto:
    """The AttributeProto of an attribute; integers and floats keep their kind."""
    if isinstance(value, Opaque):
        return onnx.AttributeProto.FromString(value.data)
    plain_value = list(value) if isinstance(value, tuple) else value
    proto: onnx.AttributeProto = onnx.helper.make_attribute(name, plain_value)
    return proto
