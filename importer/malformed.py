"""What a node that no schema allows makes rules stumble over is an error of the model."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from intonnx.ir.errors import STUMBLES, IntonnxError, ModelFailure


@contextmanager
def reading(label: str) -> Generator[None, None, None]:
    """Errors inside name this node.

    The onnx checker lets attributes of the wrong kind and absent operands pass where it does not
    know an operator's schema, or looks only at names. Rules need not ask for each of these.
    """
    try:
        yield
    except IntonnxError as error:
        raise error.located(node=label) from None
    except STUMBLES as error:
        details = (str(error) or type(error).__name__).splitlines()
        cause = f"the node is malformed: {type(error).__name__}: {', '.join(details[:3])}"
        raise ModelFailure(cause, node=label) from error
