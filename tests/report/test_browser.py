"""The page in a real browser: nothing complains, and everything answers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intonnx.report.collect import collect
from intonnx.report.page import write_report

from .test_collect import build, sample

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is of the dev group")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """The page of a small model, opened and laid out; the console must stay empty."""
    write_report(collect(build(), "model.onnx", [sample()], "an input"), tmp_path / "r.html")
    context = browser.new_context(offline=True)
    opened = context.new_page()
    said: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.goto((tmp_path / "r.html").as_uri())
    opened.wait_for_selector("#canvas[data-laid]", timeout=30_000)
    yield opened
    context.close()
    assert said == []


def test_search_shows_an_operator(page: Any) -> None:
    page.keyboard.press("/")
    page.keyboard.type("conv2d")
    page.wait_for_selector("#details h2")
    assert page.inner_text("#hits") == "1 of 1"
    assert page.inner_text("#details h2") == "conv_node"
    assert "qnn.conv2d" in page.inner_text("#details")
    assert "accumulator: " in page.inner_text("#details")
    assert page.locator("#details .histogram canvas").count() >= 2


def test_a_click_in_the_graph_shows_what_is_there(page: Any) -> None:
    box = page.locator("#canvas").bounding_box()
    # The graph is a column, fitted into the middle of the canvas.
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("#details h2")
    assert page.inner_text("#details .state") in ("integer", "float", "boundary")


def test_arrow_keys_go_along_the_edges(page: Any) -> None:
    page.focus("#canvas")
    seen = []
    for _ in range(4):
        page.keyboard.press("ArrowDown")
        page.wait_for_timeout(50)
        seen.append(page.inner_text("#details"))
    assert len(set(seen)) == 4


def test_a_float_operator_says_why_and_leads_to_the_graph(page: Any) -> None:
    page.click("#tab-floats")
    row = page.locator("#view-floats tbody tr")
    assert row.count() == 1
    assert "no-integer-form" in row.inner_text()
    row.click()
    page.wait_for_selector("#details .reason")
    assert page.is_visible("#view-graph")
    assert "no-integer-form" in page.inner_text("#details .reason")


def test_tables_sort(page: Any) -> None:
    page.click("#tab-values")
    heading = page.get_by_role("button", name="value", exact=True)
    heading.click()
    names = page.locator("#view-values tbody tr td:first-child").all_inner_texts()
    assert names == sorted(names, key=str.lower)
    heading.click()
    assert page.locator("#view-values tbody tr td:first-child").all_inner_texts() == names[::-1]


def test_every_view_opens_by_its_number(page: Any) -> None:
    for number, view in enumerate(("graph", "layers", "floats", "ranges", "values"), 1):
        page.keyboard.press(str(number))
        assert page.is_visible(f"#view-{view}")
        assert page.locator("main > section:visible").count() == 1
    page.keyboard.press("2")
    assert page.locator("#charts canvas").count() >= 2


def test_light_and_dark(page: Any) -> None:
    def paper() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    light = paper()
    page.keyboard.press("t")
    dark = paper()
    assert light != dark
    page.click("#theme")
    assert paper() == light


def test_nothing_is_wider_than_a_phone(page: Any) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    for number in range(1, 6):
        page.keyboard.press(str(number))
        page.wait_for_timeout(50)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
