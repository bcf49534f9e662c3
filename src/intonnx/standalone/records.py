"""What stands in for pydantic inside a program that needs numpy alone.

The records of such a program were validated when it was compiled, and its text is checked by
`verify` when it is read. So fields are only set, and those arrays made that a `BeforeValidator`
makes; the checks that a record writes itself, its `model_validator`s, run here too.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar

Maker = Callable[[Any], Any]
Method = TypeVar("Method", bound=Callable[..., Any])
MISSING = object()


class ValidationError(ValueError):
    """A check of a record failed."""

    def errors(self) -> list[dict[str, str]]:
        """One entry, with the cause under `msg`."""
        return [{"msg": str(self)}]


class BeforeValidator:
    """In an annotation: the function that makes a field's value from what was given."""

    def __init__(self, function: Maker) -> None:
        self.function = function


class PlainSerializer:
    """In an annotation: how a field becomes JSON, which a program never writes."""

    def __init__(self, function: Maker) -> None:
        self.function = function


class Field:
    """The default of a field, made anew for each record."""

    def __init__(self, default: object = MISSING, default_factory: Any = None) -> None:
        self._default, self._factory = default, default_factory

    def get_default(self, *, call_default_factory: bool = False) -> Any:
        """The default value; MISSING when there is none."""
        if self._factory is not None:
            return self._factory() if call_default_factory else None
        return self._default


def ConfigDict(**settings: object) -> dict[str, object]:  # noqa: N802
    """The settings of a record, which a program does not need."""
    return settings


def model_validator(*, mode: str) -> Callable[[Method], Method]:
    """Mark a method that checks a complete record."""

    def mark(method: Method) -> Method:
        method.__dict__["checks"] = mode
        return method

    return mark


class BaseModel:
    """A record: fields by annotation, equal when all of them are."""

    model_fields: ClassVar[dict[str, Field]] = {}
    _makers: ClassVar[dict[str, Maker] | None] = None

    def __init_subclass__(cls) -> None:
        own = inspect.get_annotations(cls)
        names = [name for name, hint in own.items() if "ClassVar" not in str(hint)]
        fields = {name: _default(cls.__dict__.get(name, MISSING)) for name in names}
        cls.model_fields = {
            **cls.model_fields,
            **{name: field for name, field in fields.items() if name != "model_config"},
        }
        cls._makers = None

    def __init__(self, **values: Any) -> None:
        for name, field in self.model_fields.items():
            value = values.pop(name, MISSING)
            if value is MISSING:
                value = field.get_default(call_default_factory=True)
            if value is MISSING:
                raise ValidationError(f"{type(self).__name__} has no {name}")
            maker = self._made().get(name)
            self.__dict__[name] = value if maker is None else maker(value)
        if values:
            raise ValidationError(f"{type(self).__name__} knows no {', '.join(values)}")
        self._check_all()

    def __setattr__(self, name: str, value: object) -> None:
        raise ValidationError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    @classmethod
    def model_validate(cls, values: Mapping[str, Any]) -> Self:
        """A record of these fields."""
        return cls(**values)

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        """The same record with some fields changed, unchecked as in pydantic."""
        copy = object.__new__(type(self))
        copy.__dict__.update({**self.__dict__, **update})
        return copy

    @classmethod
    def _made(cls) -> dict[str, Maker]:
        """What makes the fields that are not taken as given; hints are read on first use."""
        if cls._makers is None:
            hints = typing.get_type_hints(cls, include_extras=True)
            makers = {name: _maker(hint) for name, hint in hints.items()}
            cls._makers = {name: maker for name, maker in makers.items() if maker is not None}
        return cls._makers

    def _check_all(self) -> None:
        for base in reversed(type(self).__mro__):
            for member in vars(base).values():
                if getattr(member, "__dict__", {}).get("checks") == "after":
                    try:
                        member(self)
                    except ValueError as error:
                        raise ValidationError(str(error)) from None


def _default(value: object) -> Field:
    return value if isinstance(value, Field) else Field(value)


def _maker(hint: Any) -> Maker | None:
    """The function that makes a value of a type from what was given; None for what is as given."""
    for extra in getattr(hint, "__metadata__", ()):
        if isinstance(extra, BeforeValidator):
            return extra.function
    if isinstance(hint, type) and issubclass(hint, tuple):
        named: Maker | None = getattr(hint, "_make", None)
        return named
    parts = typing.get_args(hint)
    if typing.get_origin(hint) is tuple and parts[1:] == (...,):
        item = _maker(parts[0])
        return tuple if item is None else lambda given: tuple(map(item, given))
    if type(None) in parts:
        # No field is made in one of several ways.
        known = next(filter(None, map(_maker, parts)), None)
        return known and (lambda given: None if given is None else known(given))
    return None
