"""Make the page: one HTML file with its data, its scripts and its libraries inside."""

from __future__ import annotations

import os
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from intonnx.ir.archive import replacing

from .facts import Facts

_STYLES = ("vendor/uPlot.min.css", "page.css")
_SCRIPTS = (
    "vendor/cytoscape.min.js",
    "vendor/elk-api.js",
    "vendor/uPlot.iife.min.js",
    "dom.js",
    "graph.js",
    "charts.js",
    "details.js",
    "tables.js",
    "page.js",
)
_WORKER = "vendor/elk-worker.min.js"


def render(facts: Facts) -> str:
    """The page. It asks nothing of the network; the same facts give the same text."""
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    template = environment.from_string(_read("page.html.j2"))
    return template.render(
        facts=facts,
        data=_json(facts.model_dump_json()),
        # Ours and those of the libraries; a test sees to it that none ends its element.
        styles=[Markup(_read(name)) for name in _STYLES],
        scripts=[Markup(_read(name)) for name in _SCRIPTS],
        worker=Markup(_read(_WORKER)),
    )


def write_report(facts: Facts, path: str | os.PathLike[str]) -> None:
    """Write the page; it appears when it is complete. Raises TextFailure."""
    with replacing(path) as file:
        file.write(render(facts).encode())


def _read(name: str) -> str:
    return files(__package__ or "").joinpath(name).read_text("utf-8")


def _json(text: str) -> Markup:
    """JSON as the content of a script element, which nothing in it can end."""
    return Markup(text.replace("<", "\\u003c"))
