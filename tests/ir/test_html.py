"""What a notebook shows."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import intonnx

from .test_dot import graph_of


class Reader(HTMLParser):
    """The text of a page; every tag must be closed in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f" {data}"


def text_of(page: str) -> str:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return re.sub(r"\s+", " ", reader.text)


def test_a_coverage_shows_counts_and_reasons() -> None:
    found = intonnx.coverage(graph_of())
    text = text_of(found._repr_html_())
    assert f"integer {found.integer}" in text
    (node,) = [node for node in found.nodes if node.state == "float"]
    assert f"{node.name} {node.op} {node.code} {node.detail}" in text


def test_a_graph_shows_its_signature() -> None:
    text = text_of(graph_of()._repr_html_())
    assert "input x f32[N,3,6,6]" in text
    assert "output y f32[N,4,4,4]" in text


def test_names_are_no_markup() -> None:
    model = intonnx.to_onnx(graph_of(), form="qdq")
    model.graph.name = "<script>alert(1)</script>"
    page = intonnx.import_model(model)._repr_html_()
    assert "<script" not in page
    assert "<script>alert(1)</script>" in text_of(page)
