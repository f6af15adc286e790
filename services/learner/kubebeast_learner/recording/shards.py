"""Shards of a recording: their names, and their metadata; docs/recordings.md has the format as a table.

A shard is a safetensors file with the batches of successive updates. Files may come from any source: reading one
executes no code, and every value is checked.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_learner.recording.values import Values, a_count, a_list, a_mapping, a_positive, a_text, list_of

FORMAT, VERSION = "kubebeast-unrolls", 1
SUFFIX = ".safetensors"
LAYOUTS = ("rows", "frames", "stacks", "interleaved")
"""Forms of an observation leaf in memory: rows without a stack; single frames with an index; whole stacks; whole stacks
with the frames innermost. Stacks are stored as single frames."""
_NAME = re.compile(r"unrolls-(\d{10,16})(?:-rank(\d+))?\.safetensors")


class RecordingError(RuntimeError):
    """A recording that cannot be read or does not fit; the message names the file and the reason."""


class ShardFile(NamedTuple):
    """A shard by its name."""

    path: Path
    first_update: int
    rank: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Origin of a recording, the same in all shards of a rank."""

    run: str
    """Name of the run."""
    rank: int
    num_ranks: int
    env_spec: EnvSpec
    unroll_length: int
    batch_size: int
    settings: Mapping[str, Any]
    """Settings of the model, flat plain values."""

    def difference(self, other: "Source") -> str:
        """Names the first value in which `other` differs; "" without one."""
        if difference := self.env_spec.difference(other.env_spec):
            return difference
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if each.name not in ("env_spec", "settings") and mine != theirs:
                return f"{each.name} {mine!r} against {theirs!r}"
        return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """One batch in a shard, without its tensors."""

    update: int
    """Number of updates before it; if its update is skipped, the next batch has the same number."""
    step: int
    """Env-steps trained on before it."""
    num_replayed: int
    """Number of unrolls at its end that were trained on before."""
    num_missing: int
    """Number of batches that were trained on right before it and are not recorded."""
    policy_versions: Sequence[int]
    """For each column, version of the weights that chose its first action."""
    layouts: Sequence[str]
    """For each observation leaf, one of LAYOUTS."""
    compressed: Mapping[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    """Dtype and shape of the tensors that are LZ4 blocks, by name."""
    crc32: int = 0
    """CRC-32 of the stored tensors, in the order of their names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """The metadata of a shard."""

    source: Source
    began_at: int
    """Update at which the process that recorded it began. Streams have numbers of their own in each process."""
    batches: Sequence[Batch]

    def to_metadata(self) -> dict[str, str]:
        """Returns texts, JSON each, as the metadata of a safetensors file."""
        source, first, last = self.source, self.batches[0], self.batches[-1]
        values = {
            "format": FORMAT,
            "version": VERSION,
            **{each.name: getattr(source, each.name) for each in fields(source)},
            "env_spec": source.env_spec.to_plain(),
            "settings": dict(source.settings),
            "began_at": self.began_at,
            "updates": [first.update, last.update],
            "steps": [first.step, last.step],
            "batches": [{each.name: getattr(batch, each.name) for each in fields(batch)} for batch in self.batches],
        }
        return {name: json.dumps(value) for name, value in values.items()}

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str]) -> "Header":
        """Inverts `to_metadata`. Raises ValueError with the reason if a value is missing or invalid."""
        try:
            values = {name: json.loads(text) for name, text in metadata.items()}
        except (ValueError, RecursionError):
            values = {}
        if values.get("format") != FORMAT:
            raise ValueError("it holds no unrolls of KubeBeast")
        if values.get("version") != VERSION:
            raise ValueError(f"it has format version {values.get('version')!r:.50}, this program reads {VERSION}")
        read = Values(values)
        source = Source(
            run=read("run", a_text),
            rank=read("rank", a_count),
            num_ranks=read("num_ranks", a_positive),
            env_spec=read("env_spec", lambda value: EnvSpec.from_plain(a_mapping(value))),
            unroll_length=read("unroll_length", a_positive),
            batch_size=read("batch_size", a_positive),
            settings=read("settings", a_mapping),
        )
        batches = [_batch(each, source) for each in read("batches", a_list)]
        if not batches:
            raise ValueError("it holds no batch")
        return cls(source=source, began_at=read("began_at", a_count), batches=batches)


def shard_name(first_update: int, rank: int, num_ranks: int) -> str:
    """Returns the file name of the shard that begins with the batch of an update."""
    return f"unrolls-{first_update:010d}" + (f"-rank{rank}" if num_ranks > 1 else "") + SUFFIX


def find_shards(folder: Path) -> list[ShardFile]:
    """Returns the shards in a folder in the order of rank and update; none if it does not exist."""
    if not folder.is_dir():
        return []
    shards = [shard for path in folder.iterdir() if (shard := named(path)) is not None and path.is_file()]
    return sorted(shards, key=lambda shard: (shard.rank, shard.first_update))


def named(path: Path, end: str = "") -> ShardFile | None:
    """Returns the shard with the name of `path`, which has `end` after it; None for the name of another file."""
    name = _NAME.fullmatch(path.name.removesuffix(end)) if path.name.endswith(end) else None
    return None if name is None else ShardFile(path, int(name[1]), int(name[2] or 0))


def _batch(plain: object, source: Source) -> Batch:
    read, num_leaves = Values(a_mapping(plain)), len(source.env_spec.observation)
    return Batch(
        update=read("update", a_count),
        step=read("step", a_count),
        num_replayed=read("num_replayed", lambda value: a_count(value, source.batch_size - 1)),
        num_missing=read("num_missing", a_count),
        policy_versions=read("policy_versions", lambda value: list_of(a_count, value, source.batch_size)),
        layouts=read("layouts", lambda value: list_of(_layout, value, num_leaves)),
        compressed=read("compressed", lambda value: {name: _form(each) for name, each in a_mapping(value).items()}),
        crc32=read("crc32", lambda value: a_count(value, 2**32 - 1)),
    )


def _form(value: object) -> tuple[str, tuple[int, ...]]:
    dtype, shape = a_list(value)
    return a_text(dtype), tuple(map(a_count, a_list(shape)))


def _layout(value: object) -> str:
    if value not in LAYOUTS:
        raise ValueError(f"{value!r:.50} is none of {', '.join(LAYOUTS)}")
    return str(value)
