"""Files as streams of bytes, compressed or not."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from stea_fast.formats.triple_table import MissingExtraError

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
COMPRESSIONS = (".gz", ".zst")
CHUNK = 1 << 18  # bytes; small enough that what a chunk becomes stays in the cache
LONGEST_LINE = (1 << 24) - CHUNK  # bytes; with a chunk before it no more than the RDF library takes
_PACKED = 1 << 10  # bytes of zstd at a time: each of them may unpack to 32 KiB


@contextmanager
def reading(path: Path) -> Iterator[IO[bytes]]:
    """The content of a file; gzip and zstd are recognised by their first bytes."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; expected a file")
    with open(path, "rb") as raw:
        magic = raw.peek(4)[:4]  # a pipe cannot be read twice
        try:
            if magic.startswith(GZIP):
                with gzip.open(raw) as stream:
                    yield stream  # type: ignore[misc]
            elif magic == ZSTD:
                yield io.BufferedReader(_ZstdFrames(raw), CHUNK)
            else:
                yield raw
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        except Exception as error:
            if type(error).__name__ == "ZstdError":
                raise ValueError(f"{path} is damaged: {error}") from None
            raise


@contextmanager
def compressing(stream: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    """A stream that compresses as the last suffix of the file's name says. The same content gives the same bytes."""
    if suffix == ".gz":
        with gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0) as compressed:
            yield compressed  # type: ignore[misc]
    elif suffix == ".zst":
        with _zstandard().ZstdCompressor().stream_writer(stream, closefd=False) as compressed:
            yield compressed
    else:
        yield stream


def split_suffixes(path: Path) -> tuple[str, str]:
    """The suffix that names the format, and the one that names the compression ("" for none)."""
    compression = path.suffix.lower() if path.suffix.lower() in COMPRESSIONS else ""
    return Path(path.stem if compression else path.name).suffix.lower(), compression


class LongLine(bytes):
    """The beginning of a line of more than `LONGEST_LINE` bytes, the rest of which was read past."""


def lines(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines with their ends, or a `LongLine`. The last line may lack its end."""
    while line := stream.readline(LONGEST_LINE):
        yield line if _is_whole(line) else _read_past(stream, line)


def line_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """The stream in pieces of whole lines, or a `LongLine`. The last line may lack its end."""
    while chunk := stream.read(CHUNK):
        if chunk.endswith(b"\n"):
            yield chunk
            continue
        rest = stream.readline(LONGEST_LINE)
        if _is_whole(rest):
            yield chunk + rest
            continue
        begin = chunk.rfind(b"\n") + 1
        if begin:
            yield chunk[:begin]
        yield _read_past(stream, chunk[begin:] + rest)


def _is_whole(line: bytes) -> bool:
    return len(line) < LONGEST_LINE or line.endswith(b"\n")


def _read_past(stream: IO[bytes], begin: bytes) -> LongLine:
    while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
        pass
    return LongLine(begin)


class _ZstdFrames(io.RawIOBase):
    """All frames of a zstd file. The library's own reader takes a file that was cut off for one that ends there."""

    def __init__(self, raw: IO[bytes]) -> None:
        self.raw = raw
        self.library = _zstandard()
        self.frame: Any = None
        self.packed = b""
        self.unpacked, self.place = b"", 0  # what of it has been read: cutting it off again and again would copy it

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while self.place == len(self.unpacked):
            self.packed = self.packed or self.raw.read(_PACKED)
            if not self.packed:
                if self.frame is not None and not self.frame.eof:
                    raise EOFError("it ends before the end of its last frame")
                return 0
            if self.frame is None or self.frame.eof:
                self.frame = self.library.ZstdDecompressor().decompressobj()
            self.unpacked, self.place = self.frame.decompress(self.packed), 0
            self.packed = self.frame.unused_data if self.frame.eof else b""
        size = min(len(buffer), len(self.unpacked) - self.place)
        buffer[:size] = self.unpacked[self.place : self.place + size]
        self.place += size
        return size


def _zstandard() -> Any:
    try:
        import zstandard
    except ModuleNotFoundError:
        raise MissingExtraError("zstd", "tables") from None
    return zstandard
