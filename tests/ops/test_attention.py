"""QAttention and QEmbedLayerNormalization against onnxruntime.

The integer projection is exact; softmax, products of floats and normalizations round in an order of
their own, so results agree to some units of float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import intonnx
from intonnx.ir.ops.dense import Dense
from intonnx.ir.ops.gather import Gather
from support.models import MICROSOFT, Array, Builder
from support.products import ends
from support.runtime import run_onnxruntime
from support.wings import refusal_of

F32 = np.float32
BATCH, TOKENS, HIDDEN, HEADS, BEFORE = 2, 4, 6, 2, 3


def attention(
    *, mask: Any = None, past: bool = False, columns: bool = False, kind: Any = np.uint8,
    opset: int = 17, size: Any = BATCH, tokens: Any = TOKENS, present: bool = True,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:  # fmt: skip
    rng = np.random.default_rng(5)
    x = rng.integers(0, 256, (BATCH, TOKENS, HIDDEN)).astype(np.uint8)
    build = Builder(opset)
    scale = rng.uniform(0.005, 0.02, 3 * HIDDEN if columns else ()).astype(F32)
    zeros = ends(rng, scale.shape, kind)
    constants = [ends(rng, (HIDDEN, 3 * HIDDEN), kind), rng.normal(size=3 * HIDDEN).astype(F32),
                 F32(0.01), scale]  # fmt: skip
    names = [build.feed("x", (size, tokens, HIDDEN), np.uint8)]
    names += [build.constant(f"c{i}", np.asarray(v)) for i, v in enumerate(constants)]
    inputs = {"x": x}
    names.append("" if mask is None else build.feed("mask", np.shape(mask), np.int32))
    if mask is not None:
        inputs["mask"] = np.asarray(mask, np.int32)
    names += [build.constant("zx", np.uint8(128)), build.constant("zw", zeros)]
    if past:
        inputs["past"] = rng.normal(size=(2, BATCH, HEADS, BEFORE, HIDDEN // HEADS)).astype(F32)
        names.append(build.feed("past", inputs["past"].shape, F32))
    results = ["y", "present"][: 1 + present]
    node = helper.make_node("QAttention", names, results, "n", domain=MICROSOFT, num_heads=HEADS,
                            **attributes)  # fmt: skip
    build.nodes.append(node)
    for name in results:
        build.output(name, F32)
    return build.model(), inputs


def near(found: dict[str, Array], wanted: dict[str, Array]) -> None:
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-5, err_msg=name)


def check(model: onnx.ModelProto, inputs: dict[str, Array]) -> intonnx.Graph:
    wanted = run_onnxruntime(model, inputs, optimized=False)
    graph = intonnx.import_model(model)
    near(intonnx.compile(graph).run(inputs), wanted)
    for runtime in ("onnxruntime", "standard"):
        exported = intonnx.to_onnx(graph, runtime=runtime)
        near(run_onnxruntime(exported, inputs, optimized=True), wanted)
    assert {node.domain for node in exported.graph.node} == {""}
    near(intonnx.compile(intonnx.import_model(exported)).run(inputs), wanted)
    return graph


ROWS = [[1, 0, 1, 1], [0, 0, 1, 1]]
HIDDEN_ROWS = [[0, 0, 0, 0], [0, 0, 1, 1]]
CASES: list[dict[str, Any]] = [
    {},
    {"columns": True, "kind": np.int8},
    {"scale": 0.3, "present": False},
    {"unidirectional": 1},
    {"past": True},
    {"past": True, "unidirectional": 1, "mask": np.ones((BATCH, TOKENS + BEFORE))},
    {"mask": [2, 4]},
    {"mask": [3, 4, 1, 0]},
    {"mask": ROWS},
    {"mask": [ROWS[:1] * 4, ROWS[1:] * 4]},
    {"mask": HIDDEN_ROWS, "unidirectional": 1},
    {"mask": [2, 4], "mask_filter_value": -2.0, "unidirectional": 1},
    {"mask": [4, 5], "past": True},
    {"opset": 12, "mask": ROWS},
]


@pytest.mark.parametrize("options", CASES, ids=lambda options: "-".join(options) or "plain")
def test_qattention_is_a_dense_and_float_attention(options: dict[str, Any]) -> None:
    graph = check(*attention(**options))
    assert isinstance(next(n for n in graph.nodes if n.op.kind == "compute").op, Dense)


@pytest.mark.parametrize("options", [{"mask": ROWS}, {"past": True}, {"unidirectional": 1}])
def test_sizes_of_run_time(options: dict[str, Any]) -> None:
    check(*attention(size="batch", tokens="tokens", **options))


@pytest.mark.parametrize("options", [{"do_rotary": 1}, {"mask": np.ones(3 * BATCH + 2)}])
def test_what_is_not_read_is_kept(options: dict[str, Any]) -> None:
    model, _ = attention(**options)
    assert refusal_of(model, "QAttention")[0] == "unsupported-attribute"
    graph = intonnx.import_model(model)
    assert graph.types["y"].shape == (BATCH, TOKENS, HIDDEN)
    assert intonnx.to_onnx(graph).graph.node[0].op_type == "QAttention"


# -- QEmbedLayerNormalization ---------------------------------------------------------------------


def embedding(
    *, segments: bool, masked: bool, kind: Any, opset: int = 17, tokens: Any = TOKENS
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    rng = np.random.default_rng(6)
    build = Builder(opset)
    tables = [ends(rng, shape, kind) for shape in ((9, 8), (5, 8), (2, 8), (8,), (8,))]
    inputs = {"ids": rng.integers(0, 9, (BATCH, TOKENS)).astype(np.int32)}
    names = [build.feed("ids", (BATCH, tokens), np.int32), ""]
    if segments:
        inputs["segments"] = rng.integers(0, 2, (BATCH, TOKENS)).astype(np.int32)
        names[1] = build.feed("segments", (BATCH, tokens), np.int32)
    given = [segments or i != 2 for i in range(5)]
    names += [build.constant(f"t{i}", t) if given[i] else "" for i, t in enumerate(tables)]
    names.append(build.feed("mask", (BATCH, tokens), np.int32) if masked else "")
    if masked:
        inputs["mask"] = np.asarray(ROWS, np.int32)
    scales = rng.uniform(0.01, 0.1, 5).astype(F32)
    zeros = ends(rng, (5,), kind)
    for prefix, values in (("s", scales), ("z", zeros)):
        names += [build.constant(f"{prefix}{i}", v) if given[i] else ""
                  for i, v in enumerate(values)]  # fmt: skip
    node = helper.make_node("QEmbedLayerNormalization", names, ["y", "count"], "n",
                            domain=MICROSOFT, epsilon=1e-5)  # fmt: skip
    build.nodes.append(node)
    build.output("y", F32)
    build.output("count", np.int32)
    return build.model(), inputs


@pytest.mark.parametrize("opset", [12, 17, 18])
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize(("segments", "masked"), [(True, True), (False, False)])
def test_embeddings_are_rows_of_codes(opset: int, kind: Any, segments: bool, masked: bool) -> None:
    graph = check(*embedding(segments=segments, masked=masked, kind=kind, opset=opset))
    assert sum(isinstance(node.op, Gather) for node in graph.nodes) == 2 + segments


def test_an_unknown_number_of_tokens_is_kept() -> None:
    model, _ = embedding(segments=True, masked=True, kind=np.uint8, tokens="tokens")
    assert refusal_of(model, "QEmbedLayerNormalization")[0] == "unsupported-type"
