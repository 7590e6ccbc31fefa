"""The base of every wire message, and how one direction's messages are read and written."""

from __future__ import annotations

import re
from typing import Any, Generic, TypeVar

import msgspec

from shared.errors import BadMessage, UnknownMessage

T = TypeVar("T")


def kebab(name: str) -> str:
    """`CordonedSfu` -> `cordoned-sfu`, the form in which users and other programs see a message's name."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag=kebab):
    """A wire message; its tag is its class name in kebab-case."""


_encoder = msgspec.json.Encoder()


class _Tag(msgspec.Struct):
    type: str


_tag_decoder = msgspec.json.Decoder(_Tag)


def encode(message: Message) -> str:
    """The JSON text frame for `message`."""
    return _encoder.encode(message).decode()


class Reader(Generic[T]):
    """Reads the messages of one direction.

    Raises `UnknownMessage` for a tag this version does not know (count it and skip the frame: a newer peer sent it)
    and `BadMessage` for everything else that can't be read.
    """

    def __init__(self, union: Any, *, direction: str) -> None:
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(union)
        members = getattr(union, "__args__", (union,))
        self.tags: frozenset[str] = frozenset(str(member.__struct_config__.tag) for member in members)
        self.direction = direction

    def read(self, frame: str | bytes) -> T:
        """The message in `frame`; a binary frame is read as if it were text."""
        try:
            return self._decoder.decode(frame)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            tag = self._tag_of(frame)
            if tag is not None and tag not in self.tags:
                raise UnknownMessage(direction=self.direction, tag=tag[:64]) from None
            raise BadMessage(direction=self.direction, detail=str(error)[:200]) from None

    @staticmethod
    def _tag_of(frame: str | bytes) -> str | None:
        try:
            return _tag_decoder.decode(frame).type
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
