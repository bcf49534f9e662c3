"""Models that nobody should trust: one clear error that names file, node and cause."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import intonnx
from support.corpus import corpus_models

Array = np.ndarray[Any, Any]


def model(
    nodes: list[onnx.NodeProto],
    initializers: dict[str, Array] | None = None,
    *,
    opset: int = 17,
    shape: tuple[int, ...] = (1, 2, 4, 4),
    output: str = "y",
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "bad",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in (initializers or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def quantizer(
    scale: Any, zero: Any, *, axis: int | None = None, opset: int = 17
) -> onnx.ModelProto:
    attributes = {} if axis is None else {"axis": axis}
    return model(
        [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="the_q", **attributes),
            helper.make_node(
                "DequantizeLinear", ["q", "s", "z"], ["y"], name="the_dq", **attributes
            ),
        ],
        {"s": np.asarray(scale, np.float32), "z": np.asarray(zero)},
        opset=opset,
    )


def failure(source: Any, kind: type[Exception] = intonnx.ImportFailure) -> str:
    start = time.monotonic()
    with pytest.raises(kind) as caught:
        intonnx.import_model(source)
    assert time.monotonic() - start < 5
    message = str(caught.value)
    assert "\n" not in message
    return message


def write(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "bad.onnx"
    path.write_bytes(data)
    return str(path)


def test_a_missing_file(tmp_path: Path) -> None:
    assert "No such file" in failure(str(tmp_path / "none.onnx"))


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert "cannot read the file" in failure(str(tmp_path))


def test_an_empty_file(tmp_path: Path) -> None:
    assert failure(write(tmp_path, b"")).endswith("bad.onnx: the file is empty")


@pytest.mark.parametrize("data", [b"hello, world", b"\x00" * 64, bytes(range(256)), b"PK\x03\x04"])
def test_a_file_that_is_not_onnx(tmp_path: Path, data: bytes) -> None:
    assert "not an ONNX model" in failure(write(tmp_path, data))


def test_every_truncation_of_a_model(tmp_path: Path) -> None:
    data = quantizer(0.1, np.uint8(3)).SerializeToString()
    for length in range(1, len(data)):
        # A cut between two fields can leave a whole model: only another kind of error is wrong.
        with contextlib.suppress(intonnx.ImportFailure):
            intonnx.import_model(data[:length])
    assert "bad.onnx" in failure(write(tmp_path, data[: len(data) // 2]))


def test_a_cyclic_graph_names_a_node_of_the_cycle() -> None:
    bad = model([helper.make_node("Add", ["x", "b"], ["a"], name="first"),
                 helper.make_node("Relu", ["a"], ["b"], name="second")], output="b")  # fmt: skip
    message = failure(bad)
    assert "cycle" in message
    assert "'first'" in message or "'second'" in message


def test_nodes_in_another_order_are_sorted() -> None:
    graph = intonnx.import_model(
        model([helper.make_node("Relu", ["a"], ["y"]), helper.make_node("Abs", ["x"], ["a"])])
    )
    assert [node.op.title for node in graph.nodes] == ["onnx.Abs", "onnx.Relu"]


def test_a_name_that_nothing_makes() -> None:
    message = failure(model([helper.make_node("Relu", ["nowhere"], ["y"], name="reader")]))
    assert "nowhere" in message
    assert "reader" in message


def test_a_value_that_is_made_twice() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["y"])]
    assert "y" in failure(model(nodes))


def test_an_opset_that_is_too_new_or_too_old() -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    assert "opset 999" in failure(model([node], opset=999))
    assert "opset 0" in failure(model([node], opset=0))


def test_models_from_before_the_quantizers_import() -> None:
    proto = model([helper.make_node("Relu", ["x"], ["y"])], opset=8)
    (kept,) = intonnx.import_model(proto).nodes
    assert kept.op.title == "onnx.Relu"


@pytest.mark.parametrize("scale", [0.0, -0.5, float("nan"), float("inf"), -0.0])
def test_a_scale_that_is_no_positive_number(scale: float) -> None:
    message = failure(quantizer(scale, np.uint8(0)))
    assert "'the_q' (QuantizeLinear)" in message
    assert "scale" in message


def test_a_negative_scale_says_what_to_do_instead() -> None:
    message = failure(quantizer(-0.5, np.uint8(3)))
    assert message.endswith(
        "the scale -0.5 is not a finite number above zero: it turns the order of values round; "
        "quantize again with 0.5"
    )


def test_one_bad_scale_of_many_is_named() -> None:
    message = failure(quantizer([0.5, np.nan], np.zeros(2, np.uint8), axis=1))
    assert "the scale nan is not a finite number above zero (entry 1)" in message


def test_a_zero_point_of_another_type() -> None:
    bad = quantizer(0.1, np.uint8(0))
    bad.graph.initializer.append(numpy_helper.from_array(np.asarray(0, np.int8), "z8"))
    bad.graph.node[1].input[2] = "z8"
    message = failure(bad)
    assert "the_dq" in message
    assert "i8" in message
    assert "u8" in message


def test_parameters_whose_length_is_not_the_axis() -> None:
    message = failure(quantizer([0.1, 0.2, 0.3], np.zeros(3, np.uint8), axis=1))
    assert "'the_q' (QuantizeLinear)" in message
    assert "3 scales along axis 1" in message


def test_scale_and_zero_point_of_different_lengths() -> None:
    assert "the_q" in failure(quantizer([0.1, 0.2], np.zeros(3, np.uint8), axis=1))


def test_an_axis_out_of_range() -> None:
    assert "axis 7" in failure(quantizer([0.1, 0.2], np.zeros(2, np.uint8), axis=7))


def test_per_axis_parameters_before_opset_13() -> None:
    message = failure(quantizer([0.1, 0.2], np.zeros(2, np.uint8), opset=11))
    assert "the_q" in message
    assert "opset 13" in message


@pytest.mark.parametrize("path", corpus_models("ort/ocrcls_qdq_u8s8_pc.onnx"))
def test_a_real_model_with_per_axis_parameters_at_opset_11(path: Path) -> None:
    message = failure(path)
    assert message.startswith(f"{path}: node ")
    assert "axis" in message
    assert "opset 13" in message


def test_a_negative_number_of_groups() -> None:
    bad = quantizer(0.1, np.uint8(0))
    bad.graph.initializer.append(numpy_helper.from_array(np.ones((2, 2, 1, 1), np.int8), "w"))
    bad.graph.node.extend(
        [
            helper.make_node("DequantizeLinear", ["w", "s"], ["wf"], name="the_w"),
            helper.make_node("Conv", ["y", "wf"], ["c"], name="the_conv", group=-1),
        ]
    )
    bad.graph.output[0].name = "c"
    assert "the_conv" in failure(bad)


def external(tmp_path: Path, location: str, **entries: int) -> str:
    """A model whose scale lies in another file."""
    bad = quantizer(0.1, np.uint8(0))
    tensor = bad.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return write(tmp_path, bad.SerializeToString())


def test_external_data_that_is_missing(tmp_path: Path) -> None:
    message = failure(external(tmp_path, "weights.bin"))
    assert "bad.onnx" in message
    assert "'weights.bin', is missing" in message


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/hostname", "sub/../../secret.bin", ""])
def test_external_data_outside_the_folder(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(b"\x00" * 4)
    assert "outside the model's folder" in failure(external(folder, location))


def test_external_data_through_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(b"\x00" * 4)
    (folder / "inside.bin").symlink_to(tmp_path / "secret.bin")
    assert "outside the model's folder" in failure(external(folder, "inside.bin"))


def test_external_data_that_is_too_short(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"\x00" * 4)
    message = failure(external(tmp_path, "weights.bin", offset=2, length=4))
    assert "shorter than the model says" in message


def test_external_data_is_read_beside_the_model(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(np.float32(0.25).tobytes())
    graph = intonnx.import_model(external(tmp_path, "weights.bin", offset=0, length=4))
    assert graph.types["q"].params.scalar_scale == np.float32(0.25)


def test_external_data_needs_a_path(tmp_path: Path) -> None:
    path = external(tmp_path, "weights.bin")
    assert "import the model by its path" in failure(Path(path).read_bytes())


def test_a_tensor_whose_data_is_short() -> None:
    bad = quantizer([0.1, 0.2], np.zeros(2, np.uint8), axis=1)
    bad.graph.initializer[0].raw_data = b"\x00" * 5
    assert "s" in failure(bad)


def test_a_tensor_of_absurd_size() -> None:
    bad = quantizer(0.1, np.uint8(0))
    tensor = bad.graph.initializer.add(name="huge", data_type=TensorProto.FLOAT)
    tensor.dims.extend([2**40, 2**20])
    tensor.raw_data = b"\x00" * 4
    bad.graph.node.append(helper.make_node("Add", ["y", "huge"], ["z2"]))
    assert "huge" in failure(bad)


def test_nothing_that_folds_makes_an_absurd_constant() -> None:
    shape = np.asarray([2**20, 2**20], np.int64)
    nodes = [helper.make_node("ConstantOfShape", ["n"], ["big"]),
             helper.make_node("ReduceSum", ["big"], ["y"])]  # fmt: skip
    graph = intonnx.import_model(model(nodes, {"n": shape}))
    assert graph.constants.keys() == {"n"}


def test_an_overridable_scale_is_not_folded() -> None:
    legal = quantizer(0.1, np.uint8(3))
    legal.graph.input.append(helper.make_tensor_value_info("s", TensorProto.FLOAT, ()))
    graph = intonnx.import_model(legal)
    executable = intonnx.compile(graph)
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(1, 2, 4, 4)
    coarse = executable.run({"x": x, "s": np.asarray(0.5, np.float32)})["y"]
    assert set(np.unique(coarse / 0.5)) <= set(range(-3, 4))
    assert len(np.unique(executable.run({"x": x})["y"])) > len(np.unique(coarse))
    assert {n.code for n in intonnx.coverage(graph).nodes} == {"runtime-parameters"}


@pytest.mark.parametrize("field", ["graph", "node", "input", "attribute", "initializer"])
def test_a_text_that_is_not_utf8(field: str) -> None:
    bad = quantizer(0.1, np.uint8(3), axis=1)
    mark = "0123456789"
    named: dict[str, Any] = {
        "graph": bad.graph, "node": bad.graph.node[0], "attribute": bad.graph.node[0].attribute[0],
        "initializer": bad.graph.initializer[0],
    }  # fmt: skip
    if field == "input":
        bad.graph.node[0].input[0] = mark
    else:
        named[field].name = mark
    data = bad.SerializeToString().replace(mark.encode(), b"0123\xff56789")
    assert "is not UTF-8" in failure(data)


def test_a_constant_without_a_value() -> None:
    nodes = [helper.make_node("Constant", [], ["c"], name="empty"),
             helper.make_node("Add", ["x", "c"], ["y"])]  # fmt: skip
    assert "'empty' (Constant)" in failure(model(nodes))


def test_more_results_than_the_operator_has() -> None:
    bad = quantizer(0.1, np.uint8(3))
    bad.graph.node[1].domain = "com.microsoft"
    bad.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    bad.graph.node[1].output.append("extra")
    message = failure(bad)
    assert "the_dq" in message
    assert "2 results" in message


def test_a_dequantizer_without_a_scale() -> None:
    bad = quantizer(0.1, np.uint8(3))
    bad.graph.node[1].domain = "com.microsoft"
    bad.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    bad.graph.node[1].input[1] = ""
    message = failure(bad)
    assert "the_dq" in message
    assert "input 1 is missing" in message


@pytest.mark.parametrize("bound", [np.zeros(0, np.float32), np.zeros(3, np.float32)])
def test_a_bound_that_is_not_one_number(bound: Array) -> None:
    bad = quantizer(0.1, np.uint8(3))
    bad.graph.node.append(helper.make_node("Clip", ["y", "low"], ["c"], name="the_clip"))
    bad.graph.initializer.append(numpy_helper.from_array(bound, "low"))
    bad.graph.output[0].name = "c"
    message = failure(bad)
    assert "the_clip" in message
    assert f"has {bound.size} values" in message


@pytest.mark.parametrize("op_type", ["Transpose", "MaxPool", "Conv", "Concat"])
def test_an_attribute_of_the_wrong_kind(op_type: str) -> None:
    attribute = {"Transpose": "perm", "Concat": "axis", "MaxPool": "kernel_shape"}
    bad = quantizer(0.1, np.uint8(0))
    bad.graph.initializer.append(numpy_helper.from_array(np.ones((2, 2, 1, 1), np.int8), "w"))
    node = helper.make_node(op_type, ["y", "wf"] if op_type == "Conv" else ["y"], ["c"], name="op")
    empty = node.attribute.add(name=attribute.get(op_type, "strides"))
    empty.type = onnx.AttributeProto.INTS
    dequantized = helper.make_node("DequantizeLinear", ["w", "s"], ["wf"])
    requantized = helper.make_node("QuantizeLinear", ["c", "s", "z"], ["cq"])
    bad.graph.node.extend([dequantized, node, requantized])
    bad.graph.output[0].CopyFrom(helper.make_tensor_value_info("cq", TensorProto.UINT8, None))
    with contextlib.suppress(intonnx.ImportFailure):
        intonnx.import_model(bad)


def test_functions_that_inline_to_too_many_nodes() -> None:
    """Thirty functions, each of which calls the next one twice: 2^30 nodes in a file of 3 KB."""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("l", 1)]
    last = helper.make_node("Relu", ["a"], ["b"])
    functions = [helper.make_function("l", "F30", ["a"], ["b"], [last], imports)]
    for index in range(30):
        calls = [
            helper.make_node(f"F{index + 1}", [operand], [result], domain="l")
            for operand, result in (("a", "c"), ("c", "b"))
        ]
        functions.append(helper.make_function("l", f"F{index}", ["a"], ["b"], calls, imports))
    bad = model([helper.make_node("F0", ["x"], ["y"], domain="l")])
    bad.opset_import.append(imports[1])
    bad.functions.extend(functions)
    assert "functions inlined" in failure(bad)


def test_names_of_strangers_are_shown_without_control_characters() -> None:
    message = failure(model([helper.make_node("Relu", ["\x1b[31m\u202ehere"], ["y"])]))
    assert message.isprintable()
    assert "\\x1b[31m\\u202ehere" in message


def test_a_page_of_a_name_is_shortened() -> None:
    assert len(failure(model([helper.make_node("Relu", ["n" * 50_000], ["y"])]))) < 4000
