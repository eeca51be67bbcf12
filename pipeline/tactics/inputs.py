"""Files, stdin, .gz and .zst as one stream of bytes each: bounded, hashed, and told apart by content."""

from __future__ import annotations

import codecs
import hashlib
import io
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal

from pipeline.errors import InputError
from pipeline.paths import unreadable

Kind = Literal["log", "json", "plan"]

BLOCK_BYTES = 3 << 20
SNIFF_BYTES = 1 << 16
MAX_TEXT_BYTES = 64 << 30
"""Of one file, unpacked: more is a decompression bomb."""
MAX_LINE_BYTES = 32 << 20
MAX_JSON_BYTES = 1 << 30
MAX_ZSTD_WINDOW = 1 << 27
ZSTD_STEP_BYTES = 1 << 10
"""Packed bytes unpacked at once: a block of 4 bytes unpacks to at most 128 KiB, so these to 32 MiB."""
BINARY = 0.02
"""Share of control characters from which a file is no text: random bytes have 0.1, weights and ONNX graphs more than 0.05."""
_TEXT = bytes({*range(256)} - {*range(1, 7), *range(14, 27), *range(28, 32), 127})
"""All but control characters; NUL, bell, backspace, white space and escape stand in logs, too."""
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_PLANS = (b"ftrt", b"ptrt")
_JSON = re.compile(rb"\s*(?:\{\s*[\"}]|\[\s*[\[{\"\]])")
_ANSI = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
QUOTE_BYTES = 1 << 20
"""How far a file is searched for a Markdown quotation: where none begins here, lines are taken as they stand."""
_QUOTED = re.compile(rb"^(?:>(?!>).*(?:\n|\Z)){2,}", re.MULTILINE)
"""Lines of a Markdown quotation. One line alone may be the rest of an ` -> ` that was hard-wrapped."""
_QUOTE = re.compile(rb"^(?:>(?!>) ?)+", re.MULTILINE)


class UnrelatedError(InputError):
    """A readable file that is something else: where only a folder brought it in, it is passed over in silence."""


class _Hashed(io.RawIOBase):
    """A file whose bytes are hashed as they are read."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.digest = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self.digest.update(data)
        return data


class Opened:
    """One source, opened. Use as a context manager; `sha256` is of the file as it is stored, known once it was read."""

    def __init__(self, path: str, *, hashing: bool = True) -> None:
        self.path = path
        self.hashing = hashing
        try:
            self._file: IO[bytes] = sys.stdin.buffer if path == "-" else Path(path).open("rb", buffering=0)  # noqa: SIM115 - closed by __exit__
        except OSError as error:
            raise unreadable(path, error) from None
        self._hashed = _Hashed(self._file)
        self._errors: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error)
        self._text = self._unpacked()
        self._start = b""
        while len(self._start) < SNIFF_BYTES and (more := self._read(BLOCK_BYTES)):
            self._start += more
        self._bom = next(
            (name for bom, name in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")) if self._start.startswith(bom)),
            None,
        )
        self.kind: Kind = self._kind()
        self.empty = not self._start

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        if self.path != "-":
            self._file.close()

    @property
    def sha256(self) -> str:
        """Hex digest of the stored bytes; reads what is left of them."""
        while self._guard(self._hashed, BLOCK_BYTES):  # type: ignore[arg-type]
            pass
        return self._hashed.digest.hexdigest()

    def _unpacked(self) -> IO[bytes]:
        source: IO[bytes] = self._hashed if self.hashing else self._file  # type: ignore[assignment]
        first = b""
        while len(first) < 4 and (more := self._guard(source, 4 - len(first))):
            first += more
        rejoined: IO[bytes] = _Rejoined(first, source)  # type: ignore[assignment]
        if first.startswith(_GZIP):
            import gzip

            return gzip.GzipFile(fileobj=rejoined)  # type: ignore[return-value]
        if first.startswith(_ZSTD):
            import zstandard

            self._errors = (*self._errors, zstandard.ZstdError)
            return _Zstd(rejoined)  # type: ignore[return-value]
        return rejoined

    def _guard(self, source: IO[bytes], size: int) -> bytes:
        """Read; a damaged archive or disk is the input's fault."""
        try:
            return source.read(size)
        except self._errors as error:
            raise InputError(f"cannot read the file: {error}", where=self.path, hint="the file is damaged or cut; copy it again") from None

    def _read(self, size: int) -> bytes:
        return self._guard(self._text, size)

    def _kind(self) -> Kind:
        if self._start.startswith(_PLANS):
            return "plan"
        return "json" if _JSON.match(self._decoded(self._start[:4096])) else "log"

    @property
    def binary(self) -> bool:
        """Whether it is evidently no text, by its beginning."""
        return self._bom is None and len(self._start.translate(None, _TEXT)) > BINARY * len(self._start.replace(b"\0", b""))

    def _decoded(self, data: bytes) -> bytes:
        return data.decode(self._bom, "replace").lstrip("\ufeff").encode() if self._bom else data.removeprefix(codecs.BOM_UTF8)

    def whole(self, limit: int = MAX_JSON_BYTES) -> bytes:
        """All bytes, for a document that must be parsed at once."""
        parts, size = [self._start], len(self._start)
        while data := self._read(BLOCK_BYTES):
            parts.append(data)
            size += len(data)
            if size > limit:
                raise InputError(f"larger than {limit >> 20} MiB", where=self.path, hint="this is no layer info, profile or times file")
        return self._decoded(b"".join(parts))

    def blocks(self) -> Iterator[bytes]:
        """The text in blocks that end with a line feed (the last one may not), without colours and carriage returns.

        Once only; nothing of a block is kept while it is looked at.
        """
        decode = codecs.getincrementaldecoder(self._bom or "utf-8")("replace")
        rest: list[bytes | memoryview] = []
        data, self._start = self._start, b""
        total, first = 0, True
        quoted: bool | None = None
        held = 0
        while data:
            total += len(data)
            if total > MAX_TEXT_BYTES:
                raise InputError(f"unpacks to more than {MAX_TEXT_BYTES >> 30} GiB", where=self.path, hint="cut the file into builds")
            if self._bom:
                data = decode.decode(data).encode()
            if first:
                data, first = data.removeprefix(codecs.BOM_UTF8), False
            end = data.rfind(b"\n") + 1
            if end:
                rest.append(memoryview(data)[:end])
                block = b"".join(rest)
                rest, held, data = [data[end:]], len(data) - end, b""
                quoted = b"\n> " in block[:QUOTE_BYTES] if quoted is None else quoted
                yield _clean(block, quoted=quoted)
                del block
            else:
                rest.append(data)
                held += len(data)
                if held > MAX_LINE_BYTES:
                    raise InputError(f"a line of more than {MAX_LINE_BYTES >> 20} MiB", where=self.path, hint="this is no log")
            data = self._read(BLOCK_BYTES)
        if last := b"".join(rest):
            yield _clean(last, quoted=b"\n> " in last if quoted is None else quoted)


class _Rejoined(io.RawIOBase):
    """The bytes read ahead, then the file."""

    def __init__(self, first: bytes, source: IO[bytes]) -> None:
        self.first, self.source = first, source

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self.first:
            first, self.first = (self.first, b"") if size < 0 else (self.first[:size], self.first[size:])
            return first + (self.source.read(-1) if size < 0 else b"")
        return self.source.read(size)


class _Zstd(io.RawIOBase):
    """The frames of a .zst file, unpacked. An end within a frame is an error here, as it is in gzip; zstandard's reader is silent."""

    def __init__(self, source: IO[bytes]) -> None:
        import zstandard

        self.source = source
        self._unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW)
        self._frame: Any = None
        self._packed, self._at = b"", 0
        self._out, self._given = b"", 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while self._given == len(self._out):
            if not self._step():
                return b""
        end = len(self._out) if size < 0 else self._given + size
        data = self._out[self._given : end]
        self._given += len(data)
        return data

    def _step(self) -> bool:
        """Unpack the next few bytes; False at the end of the file."""
        if self._at == len(self._packed):
            self._packed, self._at = self.source.read(BLOCK_BYTES), 0
            if not self._packed:
                if self._frame is not None:
                    raise EOFError("compressed file ended before the end of a zstd frame")
                return False
        piece = self._packed[self._at : self._at + ZSTD_STEP_BYTES]
        self._frame = self._frame or self._unpacker.decompressobj()
        self._out, self._given = self._frame.decompress(piece), 0
        left = 0
        if self._frame.eof:
            left, self._frame = len(self._frame.unused_data), None
        self._at += len(piece) - left
        return True


def _clean(block: bytes, *, quoted: bool) -> bytes:
    if b"\x1b" in block:
        block = _ANSI.sub(b"", block)
    if quoted:
        block = _QUOTED.sub(lambda run: _QUOTE.sub(b"", run[0]), block)
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    return block
