"""What the commands print and write when all is well."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import onnx
import pytest

import intonnx
from intonnx.cli import app as commands
from intonnx.cli.inspection import Inspection
from intonnx.golden.hexadecimal import HexIndex
from intonnx.ir.coverage import NodeCoverage
from intonnx.ir.types import TensorType
from intonnx.lowering.numerics import Numerics
from intonnx.lowering.qlinear.emitter import Form, Runtime
from intonnx.lowering.shaping.pipeline import Cpu
from support.models import Builder, u8
from support.runtime import expose, run_onnxruntime

from .conftest import Invoke, conv_model


def test_no_command_prints_the_help(invoke: Invoke) -> None:
    result = invoke()
    assert result.exit_code == 0
    assert all(name in result.stdout for name in ("inspect", "compile", "run", "verify", "demo"))


def test_version(invoke: Invoke) -> None:
    assert invoke("--version").stdout == f"intonnx {intonnx.__version__}\n"


def test_inspect_says_what_is_float_and_why(invoke: Invoke, model: Path) -> None:
    result = invoke("inspect", model)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{model}: graph test")
    assert lines[0].endswith("opset 17")
    assert "input    x   f32[N,3,6,6]" in lines
    share = "2 of 3 computing nodes are integer (67 %), with 100 % of the multiply-accumulates"
    assert share in lines
    (reason,) = [line for line in lines if "Hardmax" in line]
    assert reason.split()[:3] == ["no-integer-form", "1", "Hardmax"]


def test_inspect_json_has_a_fixed_schema(invoke: Invoke, model: Path) -> None:
    result = invoke("inspect", model, "--json")
    found = json.loads(result.stdout)
    assert found.keys() == Inspection.model_fields.keys()
    assert found["inputs"] == [{"name": "x", "type": "f32[N,3,6,6]"}]
    assert found["opsets"][""] == 17
    assert found["counts"]["float"] == 1
    assert sum(found["counts"].values()) == len(found["nodes"]) == len(conv_model().graph.node)
    assert found["nodes"][0].keys() == NodeCoverage.model_fields.keys()
    assert Inspection.model_validate_json(result.stdout).model_dump(mode="json") == found


def test_inspect_names_the_hazards_of_accumulators(invoke: Invoke, model: Path) -> None:
    note = "1 operator with products that 8-bit kernels of CPUs without VNNI can saturate at int16"
    assert f"{note}: exact here (--ranges)" in invoke("inspect", model).stdout.splitlines()
    shown = invoke("inspect", model, "--ranges").stdout.splitlines()
    (entry,) = intonnx.accumulator_ranges(intonnx.import_model(model))
    (row,) = [line.split() for line in shown if line.startswith(f"{entry.name} ")]
    assert row[1:3] == ["qnn.conv2d", "4"]
    assert [int(cell) for cell in row[3:7]] == [entry.worst_channel, *entry.worst, entry.bits]
    assert row[7:] == ["-", "all"]
    assert f"{note}: exact here" in shown


def test_inspect_ranges_as_json_has_every_channel(invoke: Invoke, model: Path) -> None:
    found = json.loads(invoke("inspect", model, "--ranges", "--json").stdout)
    (entry,) = intonnx.accumulator_ranges(intonnx.import_model(model))
    assert found["ranges"] == [entry.model_dump(mode="json")]
    assert len(entry.low) == len(entry.high) == 4
    assert json.loads(invoke("inspect", model, "--json").stdout)["ranges"] is None


def test_inspect_ranges_of_a_model_without_sums(invoke: Invoke, tmp_path: Path) -> None:
    build = Builder(17)
    x = build.dequantize(build.feed("x", (2, 3), np.uint8), u8(0.1))
    build.output(build.quantize(build.node("Relu", [x]), u8(0.1), "y"), np.uint8)
    path = tmp_path / "relu.onnx"
    path.write_bytes(build.model().SerializeToString())
    assert invoke("inspect", path, "--ranges").stdout == f"{path}: no operator adds up integers\n"
    assert "int16" not in invoke("inspect", path).stdout


def test_inspect_prints_mlir(invoke: Invoke, model: Path) -> None:
    result = invoke("inspect", model, "--mlir")
    assert result.exit_code == 0
    assert result.stdout.startswith("module {")
    assert "!quant.uniform<u8:f32, 2.0e-02:114>" in result.stdout


def test_inspect_text_parses_back(invoke: Invoke, model: Path) -> None:
    graph = intonnx.import_model(model)
    weights = {n: a for n, a in graph.constants.items() if a.size > 16}
    assert intonnx.parse(invoke("inspect", model, "--text").stdout, weights=weights) == graph


def test_names_are_no_markup_and_no_terminal_commands(invoke: Invoke, tmp_path: Path) -> None:
    proto = conv_model()
    proto.producer_name = "[red]\x1b[2J:smile:"
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "\x1b]0;title"
    path = tmp_path / "odd.onnx"
    path.write_bytes(proto.SerializeToString())
    out = invoke("inspect", path).stdout
    assert "[red]\\x1b[2J:smile:" in out
    assert "\x1b" not in out


def test_compile_writes_onnx_that_onnxruntime_runs_the_same(
    invoke: Invoke, model: Path, image: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.onnx"
    result = invoke("compile", model, "-o", out)
    assert result.exit_code == 0, result.stderr
    export = onnx.load(out)
    assert [node.op_type for node in export.graph.node].count("QLinearConv") == 1
    expected = run_onnxruntime(export, {"x": np.load(image)}, optimized=False)["y"]
    invoke("run", model, "-i", f"x={image}", "-o", tmp_path / "y.npz")
    np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"], expected, rtol=1e-6)


def test_compile_takes_form_and_runtime(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    for form, kind in (("qdq", "Conv"), ("qlinear", "QLinearConv")):
        out = tmp_path / f"{form}.onnx"
        invoke("compile", model, "-o", out, "--form", form, "--runtime", "standard")
        loaded = onnx.load(out)
        assert kind in [node.op_type for node in loaded.graph.node]
        assert {entry.domain for entry in loaded.opset_import} == {""}


def test_compile_takes_an_opset(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.onnx"
    assert invoke("compile", model, "-o", out, "--opset", 21).exit_code == 0
    assert {entry.version for entry in onnx.load(out).opset_import if not entry.domain} == {21}
    refused = invoke("compile", model, "-o", tmp_path / "n.onnx", "--opset", 11)
    assert refused.exit_code == 2
    assert "opset 11 cannot be written" in refused.stderr
    assert not (tmp_path / "n.onnx").exists()


def test_compile_says_what_it_changed(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    result = invoke("compile", model, "-o", tmp_path / "m.onnx", "--cpu", "arm", "--explain")
    nodes = len(onnx.load(model).graph.node), len(onnx.load(tmp_path / "m.onnx").graph.node)
    assert "for onnxruntime on arm" in result.stdout
    assert f"{nodes[0]} before, {nodes[1]} after" in result.stdout
    assert "as onnxruntime runs them" in result.stdout
    assert "bit for bit" in result.stdout
    saved = tmp_path / "m.intonnx"
    invoke("compile", model, "-o", saved)
    assert "before" not in invoke("compile", saved, "-o", tmp_path / "n.onnx").stdout
    wrong = invoke("compile", model, "-o", saved, "--cpu", "arm")
    assert wrong.exit_code == 2
    assert "go with --target onnx" in wrong.stderr


def test_the_choices_are_those_of_the_library() -> None:
    hints = get_type_hints(commands.compile)
    for option, known in (
        ("form", Form),
        ("runtime", Runtime),
        ("cpu", Cpu),
        ("numerics", Numerics),
    ):
        assert get_args(get_args(hints[option])[0]) == get_args(known)


@pytest.mark.parametrize("numerics", ["qlinear", "qdq", "fixed"])
def test_a_saved_graph_runs_with_its_numerics(
    numerics: str, invoke: Invoke, model: Path, image: Path, tmp_path: Path
) -> None:
    saved, out, trace = (tmp_path / name for name in ("m.intonnx", "y.npz", "trace.npz"))
    assert invoke("compile", model, "-o", saved, "--numerics", numerics).exit_code == 0
    result = invoke("run", saved, "-i", f"x={image}", "-o", out, "--trace", trace)
    assert f"numerics {numerics}" in result.stdout
    assert f"compiled for {numerics}" in invoke("inspect", saved).stdout
    inputs = {"x": np.load(image)}
    original = run_onnxruntime(expose(conv_model()), inputs, optimized=False)["codes"]
    with np.load(trace) as values:
        apart = np.abs(values["codes"].astype(int) - original.astype(int))
    assert apart.max() <= 1
    assert np.unique(original).size > 50


def test_run_takes_an_npz_and_writes_a_trace(
    invoke: Invoke, model: Path, image: Path, tmp_path: Path
) -> None:
    np.savez(tmp_path / "in.npz", x=np.load(image))
    for text in (f"{tmp_path / 'in.npz'}", f"x={tmp_path / 'in.npz'}"):
        out, trace = tmp_path / "y.npz", tmp_path / "trace.npz"
        result = invoke("run", model, "-i", text, "-o", out, "--trace", trace)
        assert result.exit_code == 0, result.stderr
        with np.load(trace) as values, np.load(out) as outputs:
            assert {"x", "x_q", "codes", "y"} <= set(values.files)
            assert values["codes"].dtype == np.uint8
            np.testing.assert_array_equal(values["y"], outputs["y"])
            types = dict(values["__types__"].tolist())
            assert types.keys() == set(values.files) - {"__types__"}
            assert TensorType.model_validate_json(types["codes"]).params.scalar_zero_point == 100


def test_run_writes_files_for_readmemh(
    invoke: Invoke, model: Path, image: Path, tmp_path: Path
) -> None:
    out, folder = tmp_path / "y.npz", tmp_path / "hex"
    result = invoke("run", model, "-i", f"x={image}", "-o", out, "--hex", folder)
    assert result.exit_code == 0, result.stderr
    index = HexIndex.model_validate_json((folder / "index.json").read_text())
    assert {file.file for file in index.files} == {p.name for p in folder.glob("*.hex")}
    assert {"x", "codes", "y"} <= {file.name for file in index.files}
    again = invoke("run", model, "-i", f"x={image}", "-o", out, "--hex", folder)
    assert again.exit_code == 2
    assert again.stderr.startswith(f"intonnx: error: {folder}: exists already")


def test_run_writes_a_c_header(invoke: Invoke, model: Path, image: Path, tmp_path: Path) -> None:
    out, header = tmp_path / "y.npz", tmp_path / "net.h"
    result = invoke("run", model, "-i", f"x={image}", "-o", out, "--header", header)
    assert result.exit_code == 0, result.stderr
    assert "static const int8_t model_" in header.read_text()
    assert f"{header}: C header with " in result.stdout


def test_report_writes_a_page(invoke: Invoke, model: Path, image: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    result = invoke("report", model, "-o", page, "--input", f"x={image}")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"{page}: 5 operators")
    text = page.read_text()
    assert "the given inputs" in text
    assert "no-integer-form" in text
    absent = invoke("report", model, "-o", tmp_path / "absent" / "report.html")
    assert absent.exit_code == 2
    assert "there is no folder" in absent.stderr


def test_diff_says_what_changed(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    same = invoke("diff", model, model)
    assert (same.exit_code, same.stdout) == (0, "no difference\n")
    other = tmp_path / "other.onnx"
    other.write_bytes(conv_model(weight_offset=5).SerializeToString())
    changed = invoke("diff", model, other)
    assert changed.exit_code == 1
    assert "1 of 108 elements differ, by at most 5" in changed.stdout
    assert changed.stdout.splitlines()[-1] == "weights: 1"
    found = json.loads(invoke("diff", model, other, "--json").stdout)
    assert found["second"] == str(other)
    assert [d["kind"] for d in found["differences"]] == ["weights"]


def test_compile_writes_a_program(invoke: Invoke, tmp_path: Path) -> None:
    model, program = tmp_path / "digits.onnx", tmp_path / "digits.pyz"
    model.write_bytes(files("intonnx.demo_data").joinpath("digits_qdq.onnx").read_bytes())
    result = invoke("compile", model, "-o", program, "--numerics", "qdq")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"{program}: program with ")
    shown = subprocess.run(
        [sys.executable, program, "--signature"], capture_output=True, check=True
    )
    assert shown.stdout.startswith(b"input x f32[N,1,8,8]")


def test_a_program_of_a_float_operator_is_refused(
    invoke: Invoke, model: Path, tmp_path: Path
) -> None:
    result = invoke("compile", model, "-o", tmp_path / "m.pyz")
    assert result.exit_code == 2
    assert "(onnx.Hardmax): it stayed float" in result.stderr
    assert not (tmp_path / "m.pyz").exists()


def test_run_takes_arrays_of_the_other_byte_order(
    invoke: Invoke, model: Path, image: Path, tmp_path: Path
) -> None:
    swapped = tmp_path / "swapped.npy"
    np.save(swapped, np.load(image).astype(">f4"))
    for name, file in (("a", image), ("b", swapped)):
        assert (
            invoke("run", model, "-i", f"x={file}", "-o", tmp_path / f"{name}.npz").exit_code == 0
        )
    with np.load(tmp_path / "a.npz") as a, np.load(tmp_path / "b.npz") as b:
        np.testing.assert_array_equal(a["y"], b["y"])


def test_demo_reaches_the_known_accuracy(invoke: Invoke, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "demo"
    result = invoke("demo", "--output", folder)
    assert result.exit_code == 0, result.stderr
    assert "accuracy 98.99 % (393 of 397 right)" in result.stdout
    assert "the original model: same class for 397 of 397 images" in result.stdout
    assert "same class for 397 of 397 images, bit for bit equal" in result.stdout
    assert str(folder) in result.stdout
    kinds = {node.op_type for node in onnx.load(folder / "digits_qlinear.onnx").graph.node}
    assert "QLinearConv" in kinds
    assert "Conv" not in kinds
    assert sorted(p.name for p in folder.iterdir()) == [
        "digits_qdq.onnx", "digits_qlinear.onnx", "images.npy",
    ]  # fmt: skip


def test_run_profiles(invoke: Invoke, model: Path, image: Path, tmp_path: Path) -> None:
    trace = tmp_path / "events.json"
    result = invoke("run", model, "-i", f"x={image}", "-o", tmp_path / "y.npz", "--profile",
                    "--profile-trace", trace)  # fmt: skip
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    (header,) = (line for line in lines if line.startswith("operator"))
    assert header.split() == ["operator", "with", "time", "share", "result", "allocated"]
    assert any(line.startswith("'conv_node' (qnn.conv2d)") for line in lines)
    assert any("live values at most" in line for line in lines)
    assert json.loads(trace.read_text())["displayTimeUnit"] == "ms"
