"""From bytes to text: encoding and line ends; and names fit to be shown."""

from __future__ import annotations

import codecs
import re

from grader.submission.result import Refused

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decode(data: bytes, name: str, file: str | None = None) -> tuple[str, list[str]]:
    """UTF-8 with any line ends, with or without a byte order mark → text with `\\n`, and notes.

    Args:
        data: a file's bytes.
        name: what to call it.
        file: the declared file that it stands for.

    Raises:
        Refused: it is not UTF-8; the message says at which byte.
    """
    notes = []
    if data.startswith(_UTF16):
        raise Refused(
            f"{name} is UTF-16 (it begins with the bytes {data[:2].hex(' ')}); save it as UTF-8",
            "import error",
            file,
        )
    if data.startswith(codecs.BOM_UTF8):
        data = data.removeprefix(codecs.BOM_UTF8)
        notes.append(f"{name}: the byte order mark at its beginning was removed")
        skipped = len(codecs.BOM_UTF8)
    else:
        skipped = 0
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Refused(
            f"{name} is not UTF-8: byte {error.start + skipped} (line {line}) is "
            f"0x{data[error.start]:02x}; save it with the encoding UTF-8",
            "import error",
            file,
        ) from None
    if "\r" in text:
        text = unix_lines(text)
        notes.append(f"{name}: its line ends (CRLF) were converted to LF")
    return text, notes


def unix_lines(text: str) -> str:
    """The text with `\\n` for every `\\r\\n` and `\\r`, as Python itself reads it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def shown(name: str) -> str:
    """A file name that a student chose, fit for a terminal and a web page's text."""
    name = re.sub(r"\s", " ", name)
    name = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in name)
    return name if len(name) <= 120 else f"{name[:60]}…{name[-50:]}"
