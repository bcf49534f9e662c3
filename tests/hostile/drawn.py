"""Cases from seeds: a base and some random damage. The same seed gives the same case."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from random import Random

from . import bases
from .cases import Case
from .mutations import FLOATS, INTEGERS, TEXTS, damaged_bytes, damaged_model
from .plausible import plausible_model

_BASES = 64
_MARKS = frozenset("()[]{}<>:,=")
_TOKEN = re.compile(r"[%@]?[\w./]+|\"[^\"]*\"|[^\s\w]")


def model_case(seed: int) -> Case:
    """A damaged ONNX model: its bytes, or fields of its messages."""
    rng = Random(seed)
    name, proto = bases.model(rng.randrange(_BASES))
    way = rng.random()
    if way < 0.1:
        data = damaged_bytes(proto.SerializeToString(), rng)
        return Case(f"model {seed}: bytes of {name}", "model.onnx", data)
    if way < 0.35:
        return Case(f"model {seed}: fields of {name}", "model.onnx", damaged_model(proto, rng))
    return Case(f"model {seed}: meaning of {name}", "model.onnx", plausible_model(proto, rng))


def text_case(seed: int) -> Case:
    """A damaged text form: bytes, or tokens replaced, exchanged, lost, doubled."""
    rng = Random(seed)
    name, text, arrays = bases.text(rng.randrange(_BASES))
    data = text.encode()
    if rng.random() < 0.15:
        return Case(f"text {seed}: bytes of {name}", "graph.txt", damaged_bytes(data, rng),
                    {"arrays.npz": arrays})  # fmt: skip
    return Case(f"text {seed}: tokens of {name}", "graph.txt", _damaged_tokens(text, rng).encode(),
                {"arrays.npz": arrays})  # fmt: skip


def saved_case(seed: int, folder: Path) -> Case:
    """A damaged saved graph: its bytes, or those of one of its members."""
    rng = Random(seed)
    name, data = bases.saved(rng.randrange(_BASES), folder)
    if rng.random() < 0.15:
        return Case(f"saved {seed}: bytes of {name}", "graph.intonnx", damaged_bytes(data, rng))
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w") as new:
        chosen = rng.choice([*old.namelist(), "graph.txt", "graph.txt"])
        for member in old.namelist():
            content = old.read(member)
            if member == chosen and member == "graph.txt" and rng.random() < 0.7:
                content = _damaged_tokens(content.decode(), rng).encode()
            elif member == chosen:
                content = damaged_bytes(content, rng)
            new.writestr(member, content)
    return Case(f"saved {seed}: {chosen} of {name}", "graph.intonnx", stream.getvalue())


def _damaged_tokens(text: str, rng: Random) -> str:
    for _ in range(rng.choice((1, 1, 2, 4))):
        found = list(_TOKEN.finditer(text))
        if not found:
            return text
        one = rng.choice([token for token in found if token.group() not in _MARKS] or found)
        text = text[: one.start()] + _other_token(one.group(), found, rng) + text[one.end() :]
    return text


def _other_token(old: str, found: list[re.Match[str]], rng: Random) -> str:
    """Mostly a token of the same kind: the text still parses, and says something else."""
    if rng.random() < 0.12:
        wild = ("", old * 2, str(rng.choice(FLOATS)), rng.choice(TEXTS), "[" * 5000)
        return rng.choice(wild)
    if old.lstrip("-").isdigit() and rng.random() < 0.7:
        return str(rng.choice((*INTEGERS, 4, 5, 8, 255)))
    kind = _kind(old)
    return rng.choice([token.group() for token in found if _kind(token.group()) == kind])


def _kind(token: str) -> str:
    return "0" if token[0].isdigit() else token[0] if not token[0].isalpha() else token[:4]
