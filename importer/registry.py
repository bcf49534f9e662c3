"""Where rules are found: by operator type, domain and opset version."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from intonnx.ir.graph import Refusal
    from intonnx.ir.types import QuantParams

    from .node_view import NodeView
    from .qdq.boundary import Boundary
    from .qdq.codes import OnCodes

ImportRule = Callable[["NodeView"], None]
QuantizeRule = Callable[["Boundary"], "Refusal | None"]
CodesRule = Callable[["Boundary", "QuantParams | None", bool], "OnCodes | Refusal"]
Rule = TypeVar("Rule")
Key = tuple[str, str]

_IMPORTS: dict[Key, dict[int, ImportRule]] = {}
_QUANTIZES: dict[str, QuantizeRule] = {}
_COMMUTES: dict[str, CodesRule] = {}
_LIFTS: set[str] = set()


def imports(op_type: str, *, since: int, domain: str = "") -> Callable[[ImportRule], ImportRule]:
    """Register how a node of this operator is translated, from opset `since` of its domain on.

    The rule with the largest `since` not above the model's opset is used; when there is none the
    operator stays as `onnx.<op_type>`. A second rule for the same opset raises ValueError.
    """

    def register(rule: ImportRule) -> ImportRule:
        versions = _IMPORTS.setdefault((domain, op_type), {})
        if since in versions:
            raise ValueError(f"{op_type} since {since} is registered twice")
        versions[since] = rule
        return rule

    return register


def quantizes(*op_types: str, lifts: bool = False) -> Callable[[QuantizeRule], QuantizeRule]:
    """Register how a float operator of ai.onnx becomes integer between its quantizers.

    With `lifts` the rule can also move the quantizer after the operator to all of its inputs. It
    is then tried first of all, from the last operator to the first, when no operator has an integer
    form yet; what it refuses then it is asked again.
    """
    if lifts:
        _LIFTS.update(op_types)
    return _once(_QUANTIZES, op_types)


def commutes(*op_types: str) -> Callable[[CodesRule], CodesRule]:
    """Register the operator on codes of a float operator that commutes with quantization.

    Input 0 of the operator is the data. `rule(boundary, params, exact)` answers with the operator
    that acts on codes with parameters `params` (None for plain integers). With `exact` the
    dequantized result must equal the float operator on dequantized codes; without it the quantized
    float result must equal the operator on quantized data.
    """
    return _once(_COMMUTES, op_types)


def _once(table: dict[str, Rule], op_types: tuple[str, ...]) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for op_type in op_types:
            if op_type in table:
                raise ValueError(f"{op_type} is registered twice")
            table[op_type] = rule
        return rule

    return register


def import_rule(domain: str, op_type: str, version: int) -> ImportRule | None:
    """The newest import rule that is not newer than `version`, if any."""
    versions = _IMPORTS.get((domain, op_type), {})
    known = [since for since in versions if since <= version]
    return versions[max(known)] if known else None


def quantize_rule(op_type: str) -> QuantizeRule | None:
    """The rule that makes a float operator of ai.onnx integer, if any."""
    return _QUANTIZES.get(op_type)


def lifting_rule(op_type: str) -> QuantizeRule | None:
    """The rule of `quantizes` for an operator of ai.onnx if it moves quantizers up, else None."""
    return _QUANTIZES[op_type] if op_type in _LIFTS else None


def codes_rule(op_type: str) -> CodesRule | None:
    """The rule for a float operator of ai.onnx that commutes with quantization, if any."""
    return _COMMUTES.get(op_type)
