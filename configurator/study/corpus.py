"""Bytes of real text, cut into a training part and a held-out part.

The default is the language reference that ships inside Python (``pydoc_data.topics``), so a study
runs offline. It repeats whole sections under several topics; repeats are dropped before the cut,
or the held-out part would be text already seen.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from configurator.core.errors import UsageError
from configurator.probe.task import Batch, Rows

__all__ = ["SHORTEST_LINE", "VOCAB_SIZE", "Corpus", "pair_bits", "python_text", "read_corpus"]

VOCAB_SIZE = 256
_BLOCK = 4096
_HELD_OUT_EVERY = 10
_MOST_BYTES = 64 * 2**20
SHORTEST_LINE = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A text as bytes; every tenth block of 4096 is held out, and the last of those are final.

    Args:
        name: what to call it in a result.
        train: bytes to learn from.
        checks: held-out bytes that curves are drawn with.
        final: held-out bytes of the reported figure.
        context: tokens (bytes) in a row.
        sha256: of the whole text, to tell whether two results are of the same one.
        repeated_share: held-out lines that also stand in the training part, by bytes.
    """

    name: str
    train: NDArray[np.uint8]
    checks: NDArray[np.uint8]
    final: NDArray[np.uint8]
    context: int
    sha256: str
    repeated_share: float

    def train_batch(self, seed: int, step: int, rows: int) -> Batch:
        """Windows at random places of the training part."""
        rng = np.random.default_rng((1, seed, step))
        return self._windows(self.train, rng.integers(0, len(self.train) - self.context, size=rows))

    def held_out(self, seed: int, rows: int, *, final: bool = False) -> Batch:
        """Up to ``rows`` windows, evenly spread; the same for every seed, so runs compare."""
        part = self.final if final else self.checks
        last = len(part) - self.context - 1
        rows = max(1, min(rows, last // self.context))
        return self._windows(part, np.linspace(0, last, rows).astype(np.int64))

    def _windows(self, part: NDArray[np.uint8], starts: Rows) -> Batch:
        places = starts[:, None] + np.arange(self.context + 1)
        tokens = part[places].astype(np.int64)
        return tokens[:, :-1], tokens[:, 1:]


def pair_bits(corpus: Corpus) -> float:
    """Bits per byte of a table of byte pairs (add-one), which sees one byte back: what a model
    without attention can do, on the same two parts."""
    counts = np.ones((VOCAB_SIZE, VOCAB_SIZE))
    np.add.at(counts, (corpus.train[:-1], corpus.train[1:]), 1)
    bits = -np.log2(counts / counts.sum(axis=1, keepdims=True))
    return float(bits[corpus.final[:-1], corpus.final[1:]].mean())


def python_text() -> bytes:
    """Python's own language reference, every paragraph once, in the order of its topics."""
    from pydoc_data import topics

    seen: set[str] = set()
    kept = []
    for name in sorted(topics.topics):
        for paragraph in re.split(r"\n\s*\n", topics.topics[name]):
            key = " ".join(paragraph.split())
            if key and key not in seen:
                seen.add(key)
                kept.append(paragraph.strip("\n"))
    return "\n\n".join(kept).encode()


def read_corpus(path: Path | None = None, *, context: int = 128) -> Corpus:
    """The text in ``path``, any bytes at all, or Python's own reference.

    Raises ``UsageError`` for a file that cannot be read, is too short to be cut (20 blocks of
    4096 bytes), or is larger than 64 MiB.
    """
    if path is None:
        return _cut("Python's language reference (pydoc_data.topics)", python_text(), context)
    if path.exists() and not path.is_file():
        raise UsageError(f"--corpus {path} is no plain file; name one that holds text")
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"--corpus {path}: {error.strerror or error}") from None
    if len(text) > _MOST_BYTES:
        raise UsageError(f"--corpus {path} is larger than {_MOST_BYTES} bytes; give a part of it")
    return _cut(path.name, text, context)


def _cut(name: str, text: bytes, context: int) -> Corpus:
    least = 2 * _HELD_OUT_EVERY * _BLOCK
    if len(text) < least:
        raise UsageError(
            f"--corpus {name} has {len(text)} bytes; at least {least} are needed to hold out "
            "two blocks of every twenty"
        )
    blocks = [text[i : i + _BLOCK] for i in range(0, len(text), _BLOCK)]
    held = [b for i, b in enumerate(blocks) if i % _HELD_OUT_EVERY == _HELD_OUT_EVERY - 1]
    train = b"".join(b for i, b in enumerate(blocks) if i % _HELD_OUT_EVERY != _HELD_OUT_EVERY - 1)
    half = len(held) // 2
    return Corpus(
        name=name,
        train=np.frombuffer(train, np.uint8),
        checks=np.frombuffer(b"".join(held[:half]), np.uint8),
        final=np.frombuffer(b"".join(held[half:]), np.uint8),
        context=context,
        sha256=hashlib.sha256(text).hexdigest(),
        repeated_share=_repeated_share(train, b"".join(held)),
    )


def _repeated_share(train: bytes, held_out: bytes) -> float:
    """Bytes of held-out lines of 40 bytes or more that the training part has word for word."""
    known = {line.strip() for line in train.splitlines()}
    lines = [s for line in held_out.splitlines() if len(s := line.strip()) >= SHORTEST_LINE]
    total = sum(map(len, lines))
    return sum(len(line) for line in lines if line in known) / total if total else 0.0
