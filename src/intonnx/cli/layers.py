"""The layers that lose most beside a float model, as `intonnx verify` prints them."""

from __future__ import annotations

from intonnx.verification import FloatComparison, Layer

from .display import show, show_table

_WORST = 10


def show_layers(found: FloatComparison, file: str) -> None:
    """Print the layers that lose most by themselves, and what would help them."""
    count = len(found.layers)
    show(f"Beside the float model {file}: {count} values paired, {found.unpaired} without a pair")
    if not found.layers:
        return
    show("SQNR of the layers that lose most on the float model's own values, of their quantizers")
    show("alone, and in the whole run:")
    headers = ("value", "alone", "its quantizer", "whole", "cosine", "saturated")
    show_table(headers, [_row(layer) for layer in found.worst(_WORST)], right=(1, 2, 3, 4, 5))
    last = found.layers[-1]
    show(f"at the end, '{last.value}': {_decibels(last.sqnr)}")
    rows = [
        (layer.value, remedy.change, _decibels(remedy.before), _decibels(remedy.after))
        for layer in found.worst(_WORST)
        for remedy in layer.remedies
    ]
    if rows:
        show()
        show("What would help, computed again with this one change:")
        show_table(("value", "change", "SQNR now", "then"), rows, right=(2, 3))


def _row(layer: Layer) -> tuple[object, ...]:
    return (
        layer.value,
        _decibels(layer.own_sqnr),
        _decibels(layer.quantizer_sqnr),
        _decibels(layer.sqnr),
        "" if layer.cosine is None else f"{layer.cosine:.6f}",
        f"{layer.saturation:.1%}",
    )


def _decibels(sqnr: float | None) -> str:
    return "equal" if sqnr is None else f"{sqnr:.1f} dB"
