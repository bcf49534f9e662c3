"""Texts that cannot be read: every cause, with its line and column."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intonnx.ir.errors import TextFailure
from intonnx.ir.text import parse, weights_of
from intonnx.ir.types import Array
from support.graphs import SMALL, again, small

MIDDLE = "graph @g(%x: f32[2]) -> (%y: u8[2]) {\n  %y = "
ERRORS = {
    "": "line 1, column 1: expected 'graph', found the end of the text",
    "graph": "line 1, column 6: expected a name with @, found the end of the text",
    "graph @g(%x) -> () {}": "line 1, column 12: expected ':', found )",
    "graph @g(%x: f33[2]) -> () {}": "column 14: expected an element type, found f33",
    "graph @g(%x: f32[2 3]) -> () {}": "column 20: expected ',', found 3",
    "graph @g(%x: f32[1.5]) -> () {}": "expected a whole number, found 1.5",
    "graph @g(%x: f32[2], %x: f32[2]) -> () {}": "column 22: the value 'x' is made twice",
    'graph @g(%"": f32[2]) -> () {}': "column 10: the name is empty",
    'graph @g(%"\\q": f32[2]) -> () {}': "the string is not a JSON string",
    "graph @g(%x: q<f32, 1.0:0>[2]) -> () {}": "column 14: the storage type f32 is not an integer",
    "graph @g(%x: q<u8, 0.0:0>[2]) -> () {}": "the scale 0.0 is not a finite number above zero",
    "graph @g(%x: q<u8, -1.0:0>[2]) -> () {}": "the scale -1.0 is not a finite number above zero",
    "graph @g(%x: q<u8, 1e60:0>[2]) -> () {}": "the numbers are not values of f32",
    "graph @g(%x: q<u8, 1.0:256>[2]) -> () {}": "the zero point 256 is out of the range of u8",
    "graph @g(%x: q<u8, 1.0:0.5>[2]) -> () {}": "expected a value of i64, found '0.5'",
    "graph @g(%x: q<u8, @s1:0 axis=0>[2]) -> () {}": "no array 's1' among the scales",
    "graph @g(%x: q<u8, [1, 2, 3] axis=0>[2]) -> () {}": "3 scales along axis 0, which has 2",
    "graph @g(%x: q<u8, [1, 2] axis=0 axis=0>[2]) -> () {}": "expected 'axis', 'block' or '>'",
    "graph @g(%x: q<u8, [1, 2] axes=0>[2]) -> () {}": "expected 'axis', 'block' or '>'",
    "graph @g(%x: q<u8<9:1>, 1.0:0>[2]) -> () {}": "codes 9 to 1 leave the range of u8",
    "graph @g(%x: q<u8:i8, 1.0:0>[2]) -> () {}": "the expressed type i8 is not a float type",
    "graph @g(%x: q<u8, [1, 2> [2]) -> () {}": "expected a value of f32, found '2> [2'",
    "graph @g(%x: q<u8, [1, 2": "the list is not closed",
    "graph @g(%x: i8[2] = [1, 200]) -> () {}": "a number is out of the range of i8",
    "graph @g(%x: i8[2] = [1]) -> () {}": "column 22: 1 elements for the shape [2]",
    "graph @g(%x: i8[N] = [1]) -> () {}": "the shape [N] of an array is not fixed",
    "graph @g(%x: bool[2] = [true, 1]) -> () {}": "column 31: expected a value of bool, found '1'",
    "graph @g(%x: f32[2] = [1.0, z]) -> () {}": "column 29: expected a value of f32, found 'z'",
    'graph @g(%x: f32[1] = raw "AAA=") -> () {}': "2 bytes are not a whole number of f32 elements",
    'graph @g(%x: f32[1] = raw "A*A") -> () {}': "not base64",
    'graph @g(%x: str[1] = raw "") -> () {}': "an array of str has no bytes",
    "graph @g(%x: str[1] = [1]) -> () {}": "expected a quoted string, found 1",
    "graph @g() -> (%y: f32[2]) {}": "column 16: the value 'y' is not made before",
    "graph @g(%x: f32[2]) -> (%x: f32[3]) {}": "the output 'x' is made with another type",
    "graph @g(%x: f32[2]) -> (@x: f32[2]) {}": "'x' is no constant",
    "graph @g() -> () {\n  const @w : i8[99]\n}": "line 2, column 3: the array of the constant 'w'",
    "graph @g() -> () {\n  const @w : i8[N] = [1]\n}": "the shape [N] of an array is not fixed",
    "graph @g() -> () {\n  const %w : i8[1] = [1]\n}": "expected a name with @, found %w",
    MIDDLE + "qnn.frob(%x) : u8[2]\n}": "line 2, column 8: the operator 'qnn.frob' is not known",
    MIDDLE + "(%x) : u8[2]\n}": "line 2, column 8: expected an operator, found (",
    MIDDLE + "qnn.clip(%z) : u8[2]\n}": "line 2, column 17: the value 'z' is not made before",
    MIDDLE + "qnn.clip(@x) : u8[2]\n}": "line 2, column 17: 'x' is no constant",
    MIDDLE + "qnn.clip(%x) : u8[2]\n}": "line 2, column 8: low: Field required",
    MIDDLE + "qnn.clip(%x) {low=0, high=1, lo=2} : u8[2]\n}": "lo: Extra inputs are not permitted",
    MIDDLE + "qnn.clip(%x) {low=0, low=1} : u8[2]\n}": "the attribute 'low' is given twice",
    MIDDLE + "qnn.clip(%x) {low=, high=1} : u8[2]\n}": "expected a value, found ,",
    MIDDLE + "qnn.clip(%x) {low=foo, high=1} : u8[2]\n}": "expected a value, found foo",
    MIDDLE + "qnn.clip(%x) {low=0, high=1} : u8[2]\n}": "line 2, column 3: node 'y' (qnn.clip): "
    "qnn.clip C1: the operand is f32",
    MIDDLE + "qnn.quantize(%x) : _\n}": "expected a type for 'y'",
    MIDDLE + "qnn.quantize(%x)\n}": "line 3, column 1: expected ':', found }",
    MIDDLE + "onnx.Foo(%x) : u8[2]\n}": "expected '<', found (",
    MIDDLE + "onnx.Foo<1>(%x) : u8[2] from Conv\n}": "expected a quoted string, found }",
    MIDDLE + "onnx.Foo<1>(%x) : u8[2] float because x\n}": "expected a quoted string, found }",
    MIDDLE + "onnx.Foo<1>(%x) : u8[2]": "expected an operator, found the end of the text",
    MIDDLE + "onnx.Foo<1>(%x) {a=" + "[" * 99 + "} : u8[2]\n}": "lists lie too deep in lists",
    MIDDLE + "onnx.Foo<1>(%x) : u8[2]\n  %y = onnx.Foo<1>() : u8[2]\n}": "line 3, column 3: the "
    "value 'y' is made twice",
    "graph @g() -> () {\n  %y, %y = onnx.Foo<1>() : u8[], u8[]\n}": "the value 'y' is made twice",
    "graph @g() -> () {} ; x": "line 1, column 21: unexpected character ';'",
    "graph @g() -> () {} more": "expected another section or the end of the text, found more",
    "graph @g() -> () {} folded {} folded {}": "expected another section",
    "graph @g() -> () {} scales {}": "the section 'scales' does not begin a line",
    "graph @g() -> () {}\nscales { @a : f32[1] = [1] @a : f32[1] = [1] }": "two arrays are called "
    "'a'",
    "graph @g() -> () {}\nscales { @a : f32[N] = [1] }": "the shape [N] of an array is not fixed",
    "graph @g() -> () {}\nmetadata [1]": "line 2, column 10: the metadata is not a JSON object",
    "graph @g() -> () {}\nmetadata {1}": "line 2, column 10: the metadata is not JSON",
    'graph @g() -> () {}\nmetadata {"a": ' + "[" * 99999: "the metadata is not JSON",
    "graph @g(%x: f32[" + "9" * 5000 + "]) -> () {}": "the number is too long",
}


@pytest.mark.parametrize(("text", "message"), ERRORS.items(), ids=range(len(ERRORS)))
def test_bad_text_is_one_line_with_position_and_cause(text: str, message: str) -> None:
    with pytest.raises(TextFailure, match=re.escape(message)) as caught:
        parse(text)
    assert re.match(r"line \d+, column \d+: .", str(caught.value))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cut", range(0, len(SMALL), 7))
def test_a_text_that_is_cut_off_is_refused(cut: int) -> None:
    whole = SMALL[: SMALL.index("folded")]
    if cut < len(whole.rstrip()):
        with pytest.raises(TextFailure, match=r"^line \d+, column \d+: "):
            parse(SMALL[:cut], weights_of(small()))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((5, 3, 1, 1), np.uint8), "the array is uint8, the type i8"),
        (np.zeros((5, 3), np.int8), r"the array has shape \(5, 3\), the type \(5, 3, 1, 1\)"),
        (np.zeros((5, 3, 1, 2), np.int8), r"the array has shape \(5, 3, 1, 2\)"),
    ],
)
def test_weights_must_be_what_the_text_says(array: Array, message: str) -> None:
    with pytest.raises(
        TextFailure, match=f"line 2, column 3: the constant 'conv1.weight': {message}"
    ):
        parse(SMALL, {"conv1.weight": array})


def test_weights_that_are_not_asked_for_are_left_alone() -> None:
    graph = small()
    assert parse(SMALL, {**graph.constants, "other": np.zeros(3)}) == graph


@given(st.data())
def test_a_damaged_text_is_read_or_refused(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(SMALL) - 1))
    length = data.draw(st.integers(0, 9))
    piece = data.draw(
        st.text(max_size=2) | st.sampled_from(["-1", "1e999", "[", "@s1", '"', "q<u8"])
    )
    text = SMALL[:start] + piece + SMALL[start + length :]
    try:
        graph = parse(text, small().constants)
    except TextFailure as error:
        found = str(error)
    else:
        again(graph)
        return
    assert re.match(r"line \d+, column \d+: .", found)


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ('"opsets": 17', "'opsets'"),
        ('"opsets": {"": 9999999999}', "'opsets'"),
        ('"opsets": {"": "x"}', "'opsets'"),
        ('"ir_version": 1e3', "'ir_version'"),
        ('"properties": {"a": 1}', "'properties'"),
        ('"doc": []', "'doc'"),
    ],
)
def test_metadata_that_an_export_cannot_read(entry: str, fault: str) -> None:
    with pytest.raises(TextFailure, match=fault):
        parse("graph @g(%x: f32[]) -> (%x: f32[]) {\n}\nmetadata {" + entry + "}")
