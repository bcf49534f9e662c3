"""Tokens of the text form, and where they stand in it."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from intonnx.ir.errors import TextFailure

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_BLANK = re.compile(r"(?:\s|//[^\n]*)*", re.ASCII)
_TOKEN = re.compile(
    rf"(?P<name>[%@](?:[\w./$-]+|{_STRING}))"
    rf"|(?P<string>{_STRING})"
    r"|(?P<number>-?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|(?:inf|nan)(?![\w.$-])))"
    r"|(?P<word>[A-Za-z_][\w.$-]*)"
    r"|(?P<punctuation>->|[()\[\]{}<>,:=?*])",
    re.ASCII,
)
_PLAIN_NAME = re.compile(r"[\w./$-]+", re.ASCII)
_PLAIN_WORD = re.compile(r"(?!(?:inf|nan)(?![\w.$-]))[A-Za-z_][\w.$-]*", re.ASCII)


def quoted(text: str) -> str:
    """The text in JSON quotes; characters that UTF-8 cannot hold are escaped."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(text)
    return json.dumps(text, ensure_ascii=False)


def word(text: str) -> str:
    """The text bare when it reads as one word, else quoted."""
    return text if is_word(text) else quoted(text)


def is_word(text: str) -> bool:
    """Whether the text reads as one bare word."""
    return _PLAIN_WORD.fullmatch(text) is not None


def name(sigil: str, text: str) -> str:
    """A value's name after `%` or `@`."""
    return sigil + (text if _PLAIN_NAME.fullmatch(text) else quoted(text))


class Token(NamedTuple):
    """One token: `kind` is a group of the pattern above, or "end"; `start` its offset."""

    kind: str
    text: str
    start: int


class Lexer:
    """The text and one token of look-ahead. Every method raises TextFailure with the position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.token = Token("end", "", 0)
        self.seek(0)

    def seek(self, offset: int) -> None:
        """Make the token at or after an offset the current one."""
        blank = _BLANK.match(self.text, offset)
        start = blank.end() if blank else offset
        if start == len(self.text):
            self.token = Token("end", "", start)
            return
        found = _TOKEN.match(self.text, start)
        if found is None or found.lastgroup is None:
            raise self.failure(f"unexpected character {self.text[start]!r}", start)
        self.token = Token(found.lastgroup, found[0], start)

    def failure(self, cause: str, at: int | None = None) -> TextFailure:
        """The error to raise for a cause, at an offset or at the current token."""
        at = self.token.start if at is None else at
        line = self.text.count("\n", 0, at) + 1
        column = at - (self.text.rfind("\n", 0, at) + 1) + 1
        return TextFailure(f"line {line}, column {column}: {cause}")

    def expected(self, what: str) -> TextFailure:
        """The error to raise when the current token is another than `what`."""
        found = self.token.text if len(self.token.text) <= 40 else f"{self.token.text[:37]}..."
        return self.failure(f"expected {what}, found {found or 'the end of the text'}")

    def advance(self) -> Token:
        """Step over the current token and return it."""
        token = self.token
        self.seek(token.start + len(token.text))
        return token

    def at(self, text: str) -> bool:
        """Whether the current token is this word or punctuation."""
        return self.token.text == text and self.token.kind != "end"

    def accept(self, text: str) -> bool:
        """Step over this word or punctuation if it is the current token."""
        if not self.at(text):
            return False
        self.advance()
        return True

    def expect(self, text: str) -> Token:
        """Step over this word or punctuation."""
        if not self.at(text):
            raise self.expected(f"'{text}'")
        return self.advance()

    def integer(self) -> int:
        """A whole number."""
        if self.token.kind != "number" or not self.token.text.lstrip("-").isdigit():
            raise self.expected("a whole number")
        try:
            number = int(self.token.text)
        except ValueError:
            raise self.failure("the number is too long") from None
        self.advance()
        return number

    def string(self) -> str:
        """A quoted string."""
        if self.token.kind != "string":
            raise self.expected("a quoted string")
        text = self._unquoted(self.token.text)
        self.advance()
        return text

    def word(self) -> str:
        """A bare word or a quoted one."""
        return self.advance().text if self.token.kind == "word" else self.string()

    def name(self, sigils: str = "%@") -> tuple[str, str]:
        """A value's name: its sigil and the name without it."""
        token = self.token
        if token.kind != "name" or token.text[0] not in sigils:
            raise self.expected(f"a name with {' or '.join(sigils)}")
        text = self._unquoted(token.text[1:]) if token.text[1] == '"' else token.text[1:]
        if not text:
            raise self.failure("the name is empty")
        self.advance()
        return token.text[0], text

    def _unquoted(self, text: str) -> str:
        try:
            return str(json.loads(text))
        except ValueError as error:
            raise self.failure(f"the string is not a JSON string: {error}") from None
