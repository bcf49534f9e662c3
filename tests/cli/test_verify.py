"""`intonnx verify`: what it compares, and that it notices what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import intonnx
from intonnx.cli.verifying import Report
from intonnx.ir.ops.quantize import Quantize
from intonnx.lowering.integer.kernel import Context, Kernel, kernels
from intonnx.verification import random_inputs, runtime, verify_graph
from support.models import Builder, Fed, Held, s16

from .conftest import Invoke, conv_model


def test_a_model_passes_with_one_quantum_for_each_operator(invoke: Invoke, model: Path) -> None:
    result = invoke("verify", model)
    assert result.exit_code == 0, result.stdout + result.stderr
    assert result.stdout.rstrip().endswith("passed")
    assert "4 random inputs, seed 0" in result.stdout


def test_json_has_every_comparison(invoke: Invoke, model: Path, image: Path) -> None:
    result = invoke("verify", model, "--json", "-i", f"x={image}")
    found = json.loads(result.stdout)
    assert found.keys() == Report.model_fields.keys()
    assert found["passed"] is True
    assert found["random"] is None
    assert found["samples"] == 1
    made = {comparison["reference"]: comparison for comparison in found["comparisons"]}
    assert list(made) == [
        "literal", "original", "original optimized", "export", "optimized"
    ]  # fmt: skip
    codes = {d["value"]: d for d in made["export"]["operators"]}["codes"]
    assert codes["limit"] == 0
    assert codes["differing"] == 0
    assert codes["elements"] == 2 * 4 * 36
    assert "x_q" in {d["value"] for d in made["original"]["operators"]}


def test_the_same_seed_gives_the_same_report(invoke: Invoke, model: Path) -> None:
    first, second, other = (
        invoke("verify", model, "--json", "--seed", seed, "--samples", "2").stdout
        for seed in ("5", "5", "6")
    )
    assert first == second
    assert json.loads(first)["random"] != json.loads(other)["random"]


def test_another_model_fails_at_the_operator_that_differs() -> None:
    """One weight is 20 codes larger: only the convolution is beyond the limit, not what follows."""
    graph = intonnx.import_model(conv_model())
    samples = [random_inputs(graph, np.random.default_rng(0))]
    found = verify_graph(graph, samples, original=conv_model(weight_offset=20))
    made = {comparison.reference: comparison for comparison in found.comparisons}
    assert not found.passed
    assert not made["original"].passed
    assert made["literal"].passed
    beyond = [difference for difference in made["original"].operators if not difference.passed]
    assert [difference.value for difference in beyond] == ["codes"]
    assert beyond[0].largest > 1
    assert beyond[0].node == "'conv_node' (qnn.conv2d), 'codes_node' (qnn.requantize)"


def test_sums_that_leave_32_bits_are_compared_as_they_are() -> None:
    """16-bit codes: the accumulator's type is i32, the exact sum needs more."""
    rng = np.random.default_rng(3)
    build = Builder(21)
    x = build.operand(Fed("x", (1, 8, 6, 6), s16(0.001)), 0)
    w = build.operand(Held(rng.integers(-32767, 32768, (4, 8, 3, 3)), s16(0.0001)), 1)
    conv = build.node("Conv", [x, w], name="conv")
    build.output(build.quantize(conv, s16(0.05), "y"), np.int16)
    model = build.model()
    graph = intonnx.import_model(model)
    inputs = random_inputs(graph, rng)
    exact = intonnx.compile(graph).run(inputs)["y"].astype(float)
    assert np.abs(exact * 0.05 / (0.001 * 0.0001)).max() > 2**31
    assert verify_graph(graph, [inputs], original=model).passed


def test_a_failure_is_exit_code_1_and_names_the_node(
    invoke: Invoke, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = kernels._builders[Quantize]

    def off_by_two(op: Quantize, context: Context) -> Kernel:
        right = build(op, context)
        shift = np.uint8(0 if context.numerics == "qdq" else 2)
        return lambda operands: (np.minimum(right(operands)[0], np.uint8(250)) + shift,)

    monkeypatch.setitem(kernels._builders, Quantize, off_by_two)
    result = invoke("verify", model)
    assert result.exit_code == 1
    assert result.stdout.rstrip().endswith("FAILED")
    assert "Beyond the limit: 3 values" in result.stdout  # one for each reference
    assert "'x_q_node' (qnn.quantize)" in result.stdout
    assert invoke("verify", model, "--json").exit_code == 1


def test_without_onnxruntime_the_literal_meaning_is_left(
    invoke: Invoke, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "is_installed", lambda: False)
    result = invoke("verify", model)
    assert result.exit_code == 0
    assert result.stdout.count("onnxruntime is not installed") == 2


def test_a_saved_graph_is_verified_without_its_model(
    invoke: Invoke, model: Path, tmp_path: Path
) -> None:
    invoke("compile", model, "-o", tmp_path / "m.intonnx")
    result = invoke("verify", tmp_path / "m.intonnx")
    assert result.exit_code == 0
    assert "a saved graph has no ONNX model beside it" in result.stdout


def test_random_inputs_reach_every_code_and_have_the_sizes_asked_for() -> None:
    graph = intonnx.import_model(conv_model())
    x = random_inputs(graph, np.random.default_rng(0), batch=300)["x"]
    assert x.shape == (300, 3, 6, 6)
    assert x.dtype == np.float32
    codes = intonnx.compile(graph).trace({"x": x})["x_q"]
    assert np.unique(codes).size == 256


def test_sizes_of_symbolic_axes() -> None:
    proto = conv_model()
    for axis, symbol in ((2, "H"), (3, "")):
        dim = proto.graph.input[0].type.tensor_type.shape.dim[axis]
        dim.Clear()
        if symbol:
            dim.dim_param = symbol
    graph = intonnx.import_model(onnx.ModelProto.FromString(proto.SerializeToString()))
    rng = np.random.default_rng(0)
    assert random_inputs(graph, rng, sizes={"H": 5})["x"].shape == (1, 3, 5, 1)
    assert random_inputs(graph, rng, sizes={"?": 7, "N": 2})["x"].shape == (2, 3, 1, 7)


def test_against_names_the_references(invoke: Invoke, model: Path) -> None:
    found = json.loads(invoke("verify", model, "--against", "qdq", "--json").stdout)
    assert [made["reference"] for made in found["comparisons"]] == ["literal"]
    found = json.loads(invoke("verify", model, "--against", "onnxruntime", "--json").stdout)
    names = [made["reference"] for made in found["comparisons"]]
    assert names == ["original", "original optimized", "export", "optimized"]


def test_onnxruntime_that_is_asked_for_must_be_there(
    invoke: Invoke, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "is_installed", lambda: False)
    result = invoke("verify", model, "--against", "onnxruntime")
    assert result.exit_code == 2
    assert "onnxruntime is not installed: pip install 'intonnx[ort]'" in result.stderr


def test_a_float_model_shows_the_layers(invoke: Invoke, tmp_path: Path) -> None:
    from support.float_networks import images, quantized_network

    quantized = quantized_network(tmp_path)
    folder = tmp_path / "samples"
    folder.mkdir()
    for index, image in enumerate(images(2)):
        np.save(folder / f"{index}.npy", image[0] if index else image)
    result = invoke("verify", quantized, "--against", tmp_path / "float.onnx", "--data", folder)
    assert result.exit_code == 0, result.stderr
    assert f"integer execution on the 2 samples in {folder}" in result.stdout
    assert "values paired, 0 without a pair" in result.stdout
    assert "weights with a scale for each channel" in result.stdout
    result = invoke("verify", quantized, "--against", "a.onnx", "--against", "b.onnx")
    assert result.exit_code == 2
    assert "two float models" in result.stderr
    found = json.loads(
        invoke("verify", quantized, "--against", tmp_path / "float.onnx", "--json").stdout
    )
    assert found["layers"]["layers"][0]["float_value"] == "x"


def test_images_are_samples(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (6, 6, 3)).astype(np.uint8)
    image.fromarray(pixels).save(tmp_path / "a.png")
    (tmp_path / "notes.txt").write_text("no sample")
    result = invoke("verify", model, "--data", tmp_path)
    assert result.exit_code == 0, result.stderr
    assert "the 1 samples" in result.stdout
    image.fromarray(pixels[:4]).save(tmp_path / "b.png")
    result = invoke("verify", model, "--data", tmp_path)
    assert result.exit_code == 2
    (tmp_path / "b.png").write_bytes(b"no image")
    result = invoke("verify", model, "--data", tmp_path)
    assert result.exit_code == 2
    assert "b.png: not an image that can be read" in result.stderr


def test_folders_without_samples_are_refused(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    assert "no .npy, .npz or image file" in invoke("verify", model, "--data", tmp_path).stderr
    assert "no such folder" in invoke("verify", model, "--data", tmp_path / "none").stderr
    result = invoke("verify", model, "--data", tmp_path, "-i", "x=a.npy")
    assert result.exit_code == 2
    assert "give --input or --data, not both" in result.stderr


def test_values_shows_every_value(invoke: Invoke, model: Path) -> None:
    result = invoke("verify", model, "--values")
    (header,) = {line for line in result.stdout.splitlines() if line.startswith("value ")}
    assert header.split() == ["value", "differ", "ties", "largest", "SQNR", "cosine", "saturated"]
    assert any(line.startswith("x_q ") for line in result.stdout.splitlines())


def test_types_without_kernels_are_not_run(invoke: Invoke, tmp_path: Path) -> None:
    """onnxruntime has no quantizers to and from bfloat16."""
    scale = onnx.helper.make_tensor("s", onnx.TensorProto.BFLOAT16, [], [0.5])
    zero = onnx.helper.make_tensor("z", onnx.TensorProto.UINT8, [], [3])
    nodes = [onnx.helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             onnx.helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"])]  # fmt: skip
    ends = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.BFLOAT16, [4]) for n in "xy"]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], [scale, zero])
    opsets = [onnx.helper.make_opsetid("", 21)]
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10), tmp_path / "m.onnx"
    )
    result = invoke("verify", tmp_path / "m.onnx")
    assert result.exit_code == 0, result.stdout
    assert result.stdout.count("not run") == 2
