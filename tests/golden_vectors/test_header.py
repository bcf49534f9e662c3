"""The C header: a C compiler reads it, and its numbers give the codes of the numerics `fixed`."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import intonnx
from intonnx.golden import write_header
from intonnx.golden.header import _literals, _real
from intonnx.ir.names import identifiers
from intonnx.ir.ops.quantize import Requantize
from intonnx.ir.types import DType
from support.models import Array, Builder, Fed, Held, s8, u8

ARRAY = re.compile(r"static const (\w+) (\w+)\[(\d+)\] = \{([^}]*)\};")
PROGRAM = r"""
#include <stdio.h>
#include "net.h"

int main(void) { /* accumulators of channel 0, 1, ... on stdin, codes on stdout */
    const int channels = (int)(sizeof NET_MULTIPLIER / sizeof NET_MULTIPLIER[0]);
    long long x;
    for (int i = 0; scanf("%lld", &x) == 1; i++) {
        const int c = i % channels, shift = NET_SHIFT[c];
        long long y = (x * NET_MULTIPLIER[c] + (1LL << (30 - shift))) >> (31 - shift);
        y += NET_ZERO_POINT;
        if (y < NET_MIN) y = NET_MIN;
        if (y > NET_MAX) y = NET_MAX;
        printf("%lld\n", y);
    }
    return 0;
}
"""


def read(path: Path) -> dict[str, list[str]]:
    """The literals of every array."""
    found: dict[str, list[str]] = {}
    for _, name, size, body in ARRAY.findall(path.read_text()):
        found[name] = [word.strip() for word in body.split(",") if word.strip()]
        assert len(found[name]) == int(size)
    return found


@pytest.fixture
def digits() -> intonnx.Graph:
    return intonnx.import_model(files("intonnx.demo_data").joinpath("digits_qdq.onnx").read_bytes())


def test_constants_are_those_of_the_graph(digits: intonnx.Graph, tmp_path: Path) -> None:
    count = write_header(digits, tmp_path / "net.h", "net")
    arrays, names = read(tmp_path / "net.h"), identifiers(digits.types)
    assert count == len(arrays)
    for name, array in digits.constants.items():
        assert list(map(int, arrays[f"net_{names[name]}"])) == array.ravel().tolist()


def test_multipliers_give_the_codes_of_fixed(digits: intonnx.Graph, tmp_path: Path) -> None:
    write_header(digits, tmp_path / "net.h", "net")
    arrays, names = read(tmp_path / "net.h"), identifiers(digits.types)
    images = np.random.default_rng(0).random((3, 1, 8, 8), np.float32)
    trace = intonnx.compile(digits, "fixed").trace({"x": images})
    checked = 0
    for node in digits.nodes:
        x, y = node.operands[0], node.results[0]
        if not isinstance(node.op, Requantize) or digits.types[x].params.storage is not DType.I32:
            continue
        params = digits.types[y].params
        m = np.array([int(word) for word in arrays[f"net_{names[y]}_multiplier"]], object)
        shift = np.array([int(word) for word in arrays[f"net_{names[y]}_shift"]], object)
        codes = np.moveaxis(trace[x].astype(object), 1, -1)
        total = 31 - shift
        wanted = (codes * m + 2 ** (total - 1)) // 2**total + params.scalar_zero_point
        wanted = np.clip(wanted, params.qmin, params.qmax)
        assert (np.moveaxis(trace[y], 1, -1).astype(object) == wanted).all()
        checked += 1
    assert checked >= 5


def compiler() -> str:
    found = shutil.which("cc") or shutil.which("gcc")
    if found is None:
        pytest.skip("there is no C compiler on the path")
    return found


def test_a_compiler_takes_it_without_a_warning(digits: intonnx.Graph, tmp_path: Path) -> None:
    write_header(digits, tmp_path / "net.h", "8 bits */ \\")
    (tmp_path / "main.c").write_text(
        '#include "net.h"\n#include "net.h"\nint main(void){return 0;}\n'
    )
    command = [compiler(), "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    command += ["-Wno-unused-const-variable", "-fsyntax-only", "main.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_c_program_requantizes_as_fixed_does(digits: intonnx.Graph, tmp_path: Path) -> None:
    write_header(digits, tmp_path / "net.h", "net")
    graph, names = digits, identifiers(digits.types)
    node = next(n for n in graph.nodes if isinstance(n.op, Requantize))
    name = f"net_{names[node.results[0]]}"
    macros = [f"-DNET_{m.upper()}={name}_{m}" for m in ("multiplier", "shift")]
    macros += [f"-DNET_{m}={name.upper()}_{m}" for m in ("ZERO_POINT", "MIN", "MAX")]
    (tmp_path / "main.c").write_text(PROGRAM)
    command = [compiler(), "-std=c11", *macros, "main.c", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    images = np.random.default_rng(1).random((2, 1, 8, 8), np.float32)
    trace = intonnx.compile(graph, "fixed").trace({"x": images})
    sums, codes = (
        np.moveaxis(trace[v], 1, -1).ravel() for v in (node.operands[0], node.results[0])
    )
    given = "\n".join(map(str, sums.tolist()))
    done = subprocess.run(
        tmp_path / "main", input=given, capture_output=True, text=True, check=True
    )
    assert list(map(int, done.stdout.split())) == codes.tolist()


def test_names_end_no_comment(tmp_path: Path) -> None:
    draw = Builder(17)
    x = draw.operand(Fed("x */ int y; /*", (1, 2, 4, 4), u8(0.02, 114)), 0)
    w = draw.operand(Held(np.ones((2, 2, 1, 1)), s8(0.01)), 1)
    draw.quantize(draw.node("Conv", [x, w]), u8(0.05, 3), "y*/#error\n#error")
    draw.output("y*/#error\n#error", np.uint8)
    graph = intonnx.import_model(draw.model())
    write_header(graph, tmp_path / "net.h", "*/#error\n#error\n/*")
    text = re.sub(r"/\*.*?\*/", "", (tmp_path / "net.h").read_text(), flags=re.DOTALL)
    assert "#error" not in text
    assert "int y;" not in text


@pytest.mark.parametrize(
    ("array", "dtype", "words"),
    [
        (np.array([-128, 127], np.int8), DType.I8, ["-128", "127"]),
        (np.array([-(2**31), 2**31 - 1]), DType.I32, ["INT32_MIN", "2147483647"]),
        (np.array([-(2**63), 2**40]), DType.I64, ["INT64_MIN", "INT64_C(1099511627776)"]),
        (np.array([2**64 - 1], np.uint64), DType.U64, ["UINT64_C(18446744073709551615)"]),
        (np.array([True]), DType.BOOL, ["1"]),
        (np.array([0.1, np.inf], np.float32), DType.F32, ["0x1.99999a0000000p-4f", "INFINITY"]),
    ],
)
def test_literals(array: Array, dtype: DType, words: list[str]) -> None:
    assert _literals(array, dtype) == words


def test_reals_without_digits() -> None:
    assert (_real(float("nan"), "f"), _real(float("-inf"), "f")) == ("NAN", "-INFINITY")
