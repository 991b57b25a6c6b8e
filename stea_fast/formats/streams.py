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
                yield io.BufferedReader(_ZstdFrames(raw))
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


def line_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """The stream in pieces of whole lines. The last line may lack its end."""
    while chunk := stream.read(CHUNK):
        yield chunk if chunk.endswith(b"\n") else chunk + stream.readline()


class _ZstdFrames(io.RawIOBase):
    """All frames of a zstd file. The library's own reader takes a file that was cut off for one that ends there."""

    def __init__(self, raw: IO[bytes]) -> None:
        self.raw = raw
        self.library = _zstandard()
        self.frame: Any = None
        self.packed = self.unpacked = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.unpacked:
            self.packed = self.packed or self.raw.read(CHUNK)
            if not self.packed:
                if self.frame is not None and not self.frame.eof:
                    raise EOFError("it ends before the end of its last frame")
                return 0
            if self.frame is None or self.frame.eof:
                self.frame = self.library.ZstdDecompressor().decompressobj()
            self.unpacked = self.frame.decompress(self.packed)
            self.packed = self.frame.unused_data if self.frame.eof else b""
        size = min(len(buffer), len(self.unpacked))
        buffer[:size] = self.unpacked[:size]
        self.unpacked = self.unpacked[size:]
        return size


def _zstandard() -> Any:
    try:
        import zstandard
    except ModuleNotFoundError:
        raise MissingExtraError("zstd", "tables") from None
    return zstandard
