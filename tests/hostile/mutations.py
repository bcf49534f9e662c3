"""Random damage: to bytes, and to any field of a protobuf message by its kind."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

INTEGERS = (0, 1, -1, 2, 3, 7, 17, 127, 2**15, -(2**31), 2**31 - 1, 2**31, 2**40, -(2**40),
            2**62, 2**63 - 1, -(2**63))  # fmt: skip
FLOATS = (0.0, -0.0, -1.0, 1e-45, 1e-38, 3e38, 1e300, float("inf"), -float("inf"), float("nan"))
TEXTS = ("", " ", "x", "y", "../../etc/passwd", "/etc/passwd", "a/b\\c", "\x00", "\x1b[31m",
         "\n\n", "%", "@", '"', "'", "a" * 5000, "é\u202e\U0001f600", "{}", "NaN",
         "ai.onnx.ml", "QLinearConv", "DequantizeLinear", "If",
         "com.microsoft", "axis", "to", "strict")  # fmt: skip
_DOWN = 0.72
"""How probable it is that a walk goes deeper from a message, not that it damages this one."""


def damaged_bytes(data: bytes, rng: Random) -> bytes:
    """Some bytes changed, lost, doubled, or the end cut off."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        if not found:
            break
        at = rng.randrange(len(found))
        action = rng.randrange(6)
        if action == 0:
            del found[at:]
        elif action == 1:
            found[at] ^= 1 << rng.randrange(8)
        elif action == 2:
            found[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif action == 3:
            del found[at : at + rng.choice((1, 2, 8, 100))]
        elif action == 4:
            found[at:at] = found[at : at + rng.choice((1, 2, 8, 100))]
        else:
            found[at : at + 4] = struct.pack("<I", rng.choice((0, 0xFFFFFFFF, 0x7FC00000, 1)))
    return bytes(found)


def damaged_model(model: onnx.ModelProto, rng: Random) -> bytes:
    """A copy with one to three fields somewhere inside replaced, lost, doubled or exchanged."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _walk(copy, rng)
    return copy.SerializeToString()


def _walk(message: Message, rng: Random) -> None:
    present = message.ListFields()
    if not present or rng.random() < 0.06:
        present = [(field, None) for field in message.DESCRIPTOR.fields]
    field, value = rng.choice(present)
    if isinstance(message, onnx.ModelProto) and rng.random() < 0.8:
        field, value = message.DESCRIPTOR.fields_by_name["graph"], message.graph
    if value is not None and field.message_type is not None and rng.random() < _DOWN:
        inner: Any = value if hasattr(value, "ListFields") else rng.choice(value)
        _walk(inner, rng)
        return
    try:
        _damage(message, field, rng)
    except (ValueError, TypeError):
        message.ClearField(field.name)  # a value that protobuf itself refuses


def _damage(message: Message, field: Any, rng: Random) -> None:
    value: Any = getattr(message, field.name)
    if not isinstance(value, Message) and hasattr(value, "extend"):
        _damage_list(message, field, value, rng)
    elif field.message_type is not None or rng.random() < 0.1:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _other(field, value, message, rng))


def _damage_list(message: Message, field: Any, values: Any, rng: Random) -> None:
    action = rng.randrange(5)
    if not values or action == 4:
        if field.message_type is not None:
            values.add()
        else:
            values.append(_other(field, None, message, rng))
        return
    at = rng.randrange(len(values))
    if action == 0:
        del values[at]
    elif action == 1:
        values.extend([values[at]])
    elif action == 2 and field.message_type is None:
        values[at] = _other(field, values[at], message, rng)
    else:
        items = list(values)
        rng.shuffle(items)
        if field.message_type is not None:
            items = [type(item).FromString(item.SerializeToString()) for item in items]
        del values[:]
        values.extend(items)


def _other(field: Any, value: Any, message: Message, rng: Random) -> Any:
    kind = field.type
    if kind == FieldDescriptor.TYPE_STRING:
        return rng.choice(TEXTS)
    if kind == FieldDescriptor.TYPE_BYTES:
        return _other_bytes(value or b"", rng)
    if kind in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return rng.choice(FLOATS)
    if kind == FieldDescriptor.TYPE_ENUM:
        return rng.randrange(24)
    if field.name in ("data_type", "elem_type"):
        return rng.randrange(28)
    return rng.choice(INTEGERS) if rng.random() < 0.7 else rng.randrange(-3, 10)


def _other_bytes(value: bytes, rng: Random) -> bytes:
    wild = [f for f in FLOATS if abs(f) < 1e39 or f != f]
    scale = struct.pack("<f", rng.choice(wild))
    ways: list[Callable[[], bytes]] = [
        lambda: value[: rng.randrange(len(value) + 1)],
        lambda: scale * max(1, len(value) // 4),
        lambda: scale + value[4:],
        lambda: damaged_bytes(value, rng),
        lambda: b"\xff" * len(value),
        lambda: b"",
    ]
    return rng.choice(ways)()
