"""What passes between the judge and a learner's process: frames of JSON and raw numbers, nothing that can be executed.

A frame is eight bytes, its length and the length of its JSON, then the JSON, then the numbers of its arrays one after
the other. The JSON says of each array its dtype and shape. (The header of an .npy file is a Python literal, and parsing
one is more than a hostile sender should be able to ask for.) Whatever is not as it should be is a ProtocolError; every
length is checked before anything is read, decoded or allocated.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

LARGEST = 8 * 2**20
"""Bytes of a frame from a learner's process."""
LARGEST_JSON = 2**20
MOST_ARRAYS = 4096
"""Arrays of a frame."""
MOST_AXES = 32
DTYPES = frozenset({"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"})
LONGEST_TEXT = 1000
"""Characters of an element of a text array."""
LENGTHS = struct.Struct(">II")

Message = dict[str, Any]


class ProtocolError(ValueError):
    """Bytes that are no frame, or a frame that says what it may not."""


def carries(array: np.ndarray) -> bool:
    """Whether an array's dtype can be sent."""
    return can_be_sent(array.dtype)


@cache
def can_be_sent(dtype: np.dtype) -> bool:
    return name_of(dtype) in DTYPES or (dtype.kind == "U" and 0 < dtype.itemsize <= 4 * LONGEST_TEXT)


@cache
def name_of(dtype: np.dtype) -> str:
    return dtype.newbyteorder("<").str


def numbers_of(array: np.ndarray) -> bytes:
    name = name_of(array.dtype)
    return array.tobytes() if array.dtype.str == name else array.astype(name).tobytes()


def pack(message: Message, arrays: Sequence[np.ndarray] = ()) -> bytes:
    """A frame. Raises ProtocolError for an array whose dtype cannot be sent."""
    if not all(map(carries, arrays)):
        raise ProtocolError("an array of this dtype cannot be sent")
    text = json.dumps({**message, "arrays": [(name_of(array.dtype), array.shape) for array in arrays]}).encode()
    numbers = b"".join(map(numbers_of, arrays))
    return LENGTHS.pack(len(text) + len(numbers), len(text)) + text + numbers


def unpack(body: bytes, json_length: int) -> tuple[Message, list[np.ndarray]]:
    """The message of a frame and its arrays, without the eight bytes in front."""
    try:
        message = json.loads(body[:json_length].decode())
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"no JSON: {error}") from error
    described = message.pop("arrays", None) if isinstance(message, dict) else None
    if not isinstance(described, list) or len(described) > MOST_ARRAYS:
        raise ProtocolError("no list of arrays")
    arrays, start = [], json_length
    for one in described:
        dtype, shape, count = checked(one)
        stop = start + count * dtype.itemsize
        if stop > len(body):
            raise ProtocolError("an array is longer than its frame")
        arrays.append(array_of(body, start, count, dtype, shape))
        start = stop
    if start != len(body):
        raise ProtocolError("a frame is longer than its arrays")
    return message, arrays


Layout = tuple[np.dtype, tuple[int, ...], int]


def checked(described: Any) -> Layout:
    """The dtype, shape and number of elements that an entry names."""
    if type(described) is not list or len(described) != 2 or type(described[1]) is not list:
        raise ProtocolError("an array without dtype and shape")
    try:
        return layout(described[0], *described[1])
    except TypeError as error:  # what cannot be looked up is neither a text nor a number
        raise ProtocolError("an array without dtype and shape") from error


@lru_cache(maxsize=4096, typed=True)
def layout(name: Any, *shape: Any) -> Layout:
    """Most arrays of a class look alike: each kind is checked once."""
    if type(name) is not str or len(shape) > MOST_AXES:
        raise ProtocolError("an array without dtype and shape")
    if not all(type(n) is int and 0 <= n <= LARGEST for n in shape):
        raise ProtocolError("an array of impossible shape")
    return KNOWN.get(name) or text_dtype(name), shape, math.prod(shape)


KNOWN = {name: np.dtype(name) for name in DTYPES}


def text_dtype(name: str) -> np.dtype:
    """Of no characters there is none: NumPy would make room for one in each element, of which a frame has nothing."""
    digits = name.removeprefix("<U")
    known = digits != name and digits.isascii() and digits.isdigit() and len(digits) < 5
    if not known or not 1 <= int(digits) <= LONGEST_TEXT:
        raise ProtocolError("an array of a dtype that is never sent")
    return np.dtype(name)


def array_of(body: bytes, start: int, count: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """An array, read-only where it can be, in which every element is one that NumPy itself could have made."""
    try:
        if not count:
            return np.zeros(shape, dtype)
        if dtype.kind == "b":
            return np.ndarray(shape, np.uint8, body, start) != 0
        if dtype.kind == "U" and np.frombuffer(body, "<u4", count * dtype.itemsize // 4, start).max() > 0x10FFFF:
            raise ProtocolError("a text with a character that does not exist")
        return np.ndarray(shape, dtype, body, start)
    except ValueError as error:
        raise ProtocolError(f"an array of impossible shape: {error}") from error


class Frames:
    """Takes bytes as they come and gives frames; keeps no more of them than one frame may have."""

    def __init__(self, largest: int = LARGEST) -> None:
        self.largest = largest
        self.held = bytearray()

    def take(self, data: bytes) -> Iterator[tuple[Message, list[np.ndarray]]]:
        """The frames that these bytes complete. Raises ProtocolError as soon as a frame cannot be one."""
        self.held += data
        while len(self.held) >= LENGTHS.size:
            length, json_length = LENGTHS.unpack_from(self.held)
            if length > self.largest or json_length > min(length, max(LARGEST_JSON, self.largest // 8)):
                raise ProtocolError("a frame that is too long")
            end = LENGTHS.size + length
            if len(self.held) < end:
                return
            body = bytes(self.held[LENGTHS.size : end])
            del self.held[:end]
            yield unpack(body, json_length)


def text_of(value: Any, longest: int) -> str:
    """A text that a learner's process has sent, cut, and such that any file can hold it."""
    if not isinstance(value, str):
        raise ProtocolError("not a text where a text belongs")
    cut = value[:longest]
    return cut if cut.isascii() else cut.encode("utf-8", "replace").decode()
