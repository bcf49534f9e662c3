"""Models that are more than a list of nodes: external data, sparse tensors, bodies, functions."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import intonnx
from intonnx.importer.sparse import MAX_ELEMENTS, dense
from support.runtime import run_onnxruntime

Array = np.ndarray[Any, Any]
F32 = TensorProto.FLOAT
GIB = 1 << 30


def value(name: str, shape: list[int | str] | None, element: int = F32) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def model(graph: onnx.GraphProto, opset: int = 21, **fields: Any) -> onnx.ModelProto:
    ids = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=ids, ir_version=10, **fields)


def external(
    name: str, element: int, shape: list[int], location: str, **entries: int
) -> onnx.TensorProto:
    tensor = onnx.TensorProto(
        name=name, data_type=element, dims=shape, data_location=TensorProto.EXTERNAL
    )
    for key, entry in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(entry))
    return tensor


# -- external data ---------------------------------------------------------------------------------

READ = """
import pathlib, re, sys, time, intonnx
from intonnx.cli.inspection import inspect_graph
start = time.monotonic()
graph = intonnx.import_model(sys.argv[1])
found = intonnx.coverage(graph)
str(graph)
assert inspect_graph(graph, pathlib.Path(sys.argv[1])).int32_overflows is None
# Not ru_maxrss, which is at least what the process that started this one held.
peak = re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]
print(found.integer, found.float, len(graph.constants["w0"]), peak, time.monotonic() - start)
"""


def test_weights_of_three_gigabytes_are_not_read(tmp_path: Path) -> None:
    """12 layers of 256 MiB in a file that takes no room on the disk."""
    with open(tmp_path / "w.bin", "wb") as file:
        file.truncate(3 * GIB)
    size, nodes, last = 1 << 14, list[onnx.NodeProto](), "x"
    initializers = [numpy_helper.from_array(np.float32(0.1), "s"),
                    numpy_helper.from_array(np.uint8(128), "z"),
                    numpy_helper.from_array(np.int8(0), "w_z")]  # fmt: skip
    for i in range(12):
        place = {"offset": i * GIB // 4, "length": GIB // 4}
        initializers.append(external(f"w{i}", TensorProto.INT8, [size, size], "w.bin", **place))
        nodes += [
            helper.make_node("QuantizeLinear", [last, "s", "z"], [f"q{i}"]),
            helper.make_node("DequantizeLinear", [f"q{i}", "s", "z"], [f"d{i}"]),
            helper.make_node("DequantizeLinear", [f"w{i}", "s", "w_z"], [f"r{i}"]),
            helper.make_node("MatMul", [f"d{i}", f"r{i}"], [f"y{i}"]),
        ]
        last = f"y{i}"
    graph = helper.make_graph(
        nodes, "large", [value("x", ["N", size])], [value(last, ["N", size])], initializers
    )
    path = tmp_path / "large.onnx"
    path.write_bytes(model(graph).SerializeToString())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", READ, str(path)], env=environment, text=True,
                           capture_output=True, check=True).stdout.split()  # fmt: skip
    integer, floats, rows, kilobytes = map(int, found[:4])
    assert (integer, floats, rows) == (23, 0, size)
    # Python, numpy and onnx take about 90 MB.
    assert kilobytes < 400_000
    assert float(found[4]) < 30


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint16", "int64", "bool"])
def test_external_data_is_the_same_at_any_offset(tmp_path: Path, dtype: str) -> None:
    array = np.random.default_rng(1).integers(0, 2, (3, 5)).astype(dtype)
    (tmp_path / "w.bin").write_bytes(b"abc" + array.tobytes() + b"more")
    element = helper.np_dtype_to_tensor_dtype(array.dtype)
    graph = helper.make_graph(
        [helper.make_node("And" if dtype == "bool" else "Add", ["w", "x"], ["v"])],
        "g",
        [value("x", [3, 5], element)],
        [value("v", [3, 5], element)],
        [external("w", element, [3, 5], "w.bin", offset=3, length=array.nbytes)],
    )
    (tmp_path / "m.onnx").write_bytes(model(graph).SerializeToString())
    found = intonnx.import_model(tmp_path / "m.onnx").constants["w"]
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("element", [TensorProto.INT4, TensorProto.UINT4])
def test_external_data_of_types_under_8_bits(tmp_path: Path, element: int) -> None:
    (tmp_path / "w.bin").write_bytes(b"\x21\x43\x05")
    graph = helper.make_graph(
        [helper.make_node("DequantizeLinear", ["w", "s"], ["r"]),
         helper.make_node("Add", ["x", "r"], ["y"])],
        "g", [value("x", [5])], [value("y", [5])],
        [external("w", element, [5], "w.bin"), numpy_helper.from_array(np.float32(1), "s")],
    )  # fmt: skip
    (tmp_path / "m.onnx").write_bytes(model(graph).SerializeToString())
    graph_ = intonnx.import_model(tmp_path / "m.onnx")
    result = intonnx.compile(graph_).run({"x": np.zeros(5, np.float32)})["y"]
    np.testing.assert_array_equal(result, [1, 2, 3, 4, 5])


def test_external_data_of_a_constant_in_a_branch(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(np.float32([1, 2]).tobytes())
    tensor = external("", F32, [2], "w.bin", offset=0, length=8)
    then = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], value=tensor),
         helper.make_node("Add", ["x", "c"], ["t"])], "t", [], [value("t", [2])],
    )  # fmt: skip
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["e"])], "e", [], [value("e", [2])])
    graph = helper.make_graph(
        [helper.make_node("If", ["b"], ["y"], then_branch=then, else_branch=other)],
        "g", [value("x", [2]), value("b", [], TensorProto.BOOL)], [value("y", [2])],
    )  # fmt: skip
    (tmp_path / "m.onnx").write_bytes(model(graph).SerializeToString())
    executable = intonnx.compile(intonnx.import_model(tmp_path / "m.onnx"))
    found = executable.run({"x": np.zeros(2, np.float32), "b": np.asarray(True)})["y"]
    np.testing.assert_array_equal(found, [1, 2])


def test_external_data_of_another_length_than_the_shape(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(64))
    tensor = external("w", F32, [4], "w.bin", offset=0, length=12)
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])], "g", [value("x", [4])], [value("y", [4])],
        [tensor],
    )  # fmt: skip
    (tmp_path / "m.onnx").write_bytes(model(graph).SerializeToString())
    with pytest.raises(intonnx.ImportFailure, match=r"m\.onnx.*'w' has 12 bytes.* ask for 16"):
        intonnx.import_model(tmp_path / "m.onnx")


# -- sparse tensors --------------------------------------------------------------------------------


def sparse(name: str, shape: list[int], indices: Any, values: list[float]) -> Any:
    return helper.make_sparse_tensor(
        numpy_helper.from_array(np.asarray(values, np.float32), name),
        numpy_helper.from_array(np.asarray(indices, np.int64)),
        shape,
    )


def test_sparse_tensors_are_dense_constants() -> None:
    inner = sparse("", [2, 3], [[0, 1], [1, 2]], [5, 6])
    graph = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], sparse_value=inner),
         helper.make_node("Add", ["x", "c"], ["t"]), helper.make_node("Add", ["t", "w"], ["y"])],
        "g", [value("x", [2, 3])], [value("y", [2, 3])],
    )  # fmt: skip
    graph.sparse_initializer.append(sparse("w", [2, 3], [0, 5], [1, 2]))
    found = intonnx.compile(intonnx.import_model(model(graph))).run({"x": np.ones((2, 3), "f4")})
    np.testing.assert_array_equal(found["y"], [[2, 6, 1], [1, 1, 9]])


@pytest.mark.parametrize(
    ("shape", "indices", "cause"),
    [
        ([2, 3], [0, 6], "indices"),
        ([2, 3], [-1, 1], "indices"),
        ([2, 3], [[0, 1], [2, 2]], "indices"),
        ([2, 3], [0], "indices"),
        ([1 << 20, 1 << 20], [0, 1], f"more than {MAX_ELEMENTS}"),
    ],
)
def test_a_sparse_tensor_that_is_none(shape: list[int], indices: Any, cause: str) -> None:
    with pytest.raises(intonnx.ImportFailure, match=f"'w' .*{cause}"):
        dense(sparse("w", shape, indices, [1, 2]))


# -- bodies and functions --------------------------------------------------------------------------


def nested(depth: int) -> onnx.ModelProto:
    """Ifs in the then-branches of Ifs."""
    inputs = [value("x", [2]), value("b", [], TensorProto.BOOL)]
    made = model(helper.make_graph([], "g", inputs, [value("y", [2])]))
    graph, result = made.graph, "y"
    for level in range(depth):
        node = graph.node.add(op_type="If", input=["b"], output=[result])
        other = node.attribute.add(name="else_branch", type=onnx.AttributeProto.GRAPH).g
        other.name = "else"
        other.node.add(op_type="Identity", input=["x"], output=[f"e{level}"])
        other.output.append(value(f"e{level}", [2]))
        graph = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g
        graph.name, result = "then", f"t{level}"
        graph.output.append(value(result, [2]))
    graph.node.add(op_type="Neg", input=["x"], output=[result])
    return made


def test_bodies_in_bodies_run() -> None:
    executable = intonnx.compile(intonnx.import_model(nested(12)))
    x = np.asarray([1, -2], np.float32)
    for flag, sign in ((True, -1), (False, 1)):
        found = executable.run({"x": x, "b": np.asarray(flag)})["y"]
        np.testing.assert_array_equal(found, sign * x)


@pytest.mark.parametrize("depth", [40, 1000])
def test_a_thousand_nested_bodies_are_one_error(depth: int, tmp_path: Path) -> None:
    hostile = nested(depth)
    (tmp_path / "deep.onnx").write_bytes(hostile.SerializeToString())
    start = time.monotonic()
    for source in (hostile, tmp_path / "deep.onnx"):
        with pytest.raises(intonnx.ImportFailure, match="deep in graphs"):
            intonnx.import_model(source)
    assert time.monotonic() - start < 5


def test_functions_that_call_themselves_are_one_error() -> None:
    ids = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    functions = [
        helper.make_function(
            "local", name, ["a"], ["b"], [helper.make_node(other, ["a"], ["b"], domain="local")],
            ids,
        )
        for name, other in (("F", "G"), ("G", "F"))
    ]  # fmt: skip
    call = helper.make_node("F", ["x"], ["y"], domain="local")
    graph = helper.make_graph([call], "g", [value("x", [2])], [value("y", [2])])
    with pytest.raises(intonnx.ImportFailure, match=r"local function 'local\.[FG]' calls itself"):
        intonnx.import_model(model(graph, functions=functions))


def test_functions_that_call_each_other_too_deep_are_one_error() -> None:
    ids = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]

    def calls(depth: int) -> onnx.ModelProto:
        functions = [
            helper.make_function(
                "local", f"F{i}", ["a"], ["b"],
                [helper.make_node(f"F{i + 1}", ["a"], ["b"], domain="local")], ids,
            )
            for i in range(depth)
        ]  # fmt: skip
        last = [helper.make_node("Relu", ["a"], ["b"])]
        functions.append(helper.make_function("local", f"F{depth}", ["a"], ["b"], last, ids))
        call = helper.make_node("F0", ["x"], ["y"], domain="local")
        graph = helper.make_graph([call], "g", [value("x", [2])], [value("y", [2])])
        return model(graph, functions=functions)

    assert len(intonnx.import_model(calls(200)).nodes) == 1
    with pytest.raises(intonnx.ImportFailure, match="more than 256 deep"):
        intonnx.import_model(calls(5000))


def test_functions_are_inlined_in_bodies_and_bodies_sorted() -> None:
    """Nodes of the branch stand in the wrong order, and the If before what it captures."""
    ids = [helper.make_opsetid("", 21)]
    function = helper.make_function(
        "local", "F", ["a"], ["b"],
        [helper.make_node("Relu", ["a"], ["t"]), helper.make_node("Neg", ["t"], ["b"])], ids,
    )  # fmt: skip
    then = helper.make_graph(
        [helper.make_node("Abs", ["inner"], ["t"]),
         helper.make_node("F", ["doubled"], ["inner"], domain="local")], "t", [], [value("t", [2])],
    )  # fmt: skip
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["e"])], "e", [], [value("e", [2])])
    nodes = [
        helper.make_node("If", ["b"], ["y"], then_branch=then, else_branch=other),
        helper.make_node("Add", ["x", "x"], ["doubled"]),
    ]
    inputs = [value("x", [2]), value("b", [], TensorProto.BOOL)]
    unsorted = model(helper.make_graph(nodes, "g", inputs, [value("y", [2])]), functions=[function])
    unsorted.opset_import.append(helper.make_opsetid("nobody.uses.this", 99))
    graph = intonnx.import_model(unsorted)
    exported = intonnx.to_onnx(graph)
    assert {entry.domain for entry in exported.opset_import} == {""}
    x = np.asarray([3, -2], np.float32)
    for flag, expected in ((True, [6, 0]), (False, [-3, 2])):
        given = {"x": x, "b": np.asarray(flag)}
        np.testing.assert_array_equal(intonnx.compile(graph).run(given)["y"], expected)
        np.testing.assert_array_equal(
            run_onnxruntime(exported, given, optimized=False)["y"], expected
        )


@pytest.mark.parametrize("count", [50, 3000])
def test_long_chains_of_plain_codes_are_imported(count: int) -> None:
    """What gives the codes parameters at the end looks back over the operators that move them."""
    nodes = [helper.make_node("Transpose", [f"v{i}"], [f"v{i + 1}"], perm=[1, 0])
             for i in range(count)]  # fmt: skip
    nodes.append(helper.make_node("DequantizeLinear", [f"v{count}", "s", "z"], ["y"]))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("v0", onnx.TensorProto.UINT8, [2, 2])],
        [value("y", [2, 2])],
        [numpy_helper.from_array(np.float32(0.5), "s"), numpy_helper.from_array(np.uint8(3), "z")],
    )  # fmt: skip
    imported = intonnx.import_model(model(graph))
    codes = np.array([[1, 2], [3, 4]], np.uint8)
    wanted = (codes.astype(np.float32) - 3) / 2
    np.testing.assert_array_equal(intonnx.compile(imported).run({"v0": codes})["y"], wanted)
