"""What a run will take on this machine: its stages with estimated time and memory, before any of them begins.

Times follow from a short calibration: sweeps over a small pair, an exact search of random vectors, and one embedding.
Memory follows from the sizes of the arrays that a stage holds at once. Both are estimates: times hold within a factor
of about two, since large graphs miss the caches that small ones fit in, and rounds may settle early.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from time import perf_counter
from typing import NamedTuple

import numpy as np

from stea_fast._executors.threads import ThreadsExecutor
from stea_fast._util import disk, memory
from stea_fast.data.pair import Pair
from stea_fast.data.synthetic import synthetic_pair
from stea_fast.encoders.propagation import Propagation
from stea_fast.refinement.config import Joint
from stea_fast.refinement.shard import parts_of
from stea_fast.refinement.structural import STRUCTURAL, refine_by_structure
from stea_fast.search.engines.partitioned import share_seen
from stea_fast.search.topk import APPROXIMATE, topk
from stea_fast.selftraining.config import EncoderConfig, SelfTrainingConfig
from stea_fast.selftraining.methods import SelfTrainingMethod, Stea, Structural
from stea_fast.selftraining.searching import engine_for, work_of

LOGGER = "stea_fast.plan"
LONG_RUN_EDGES = 1_000_000  # of both graphs: with more, the plan is made and told before a run
CALIBRATION_ENTITIES, CALIBRATION_ROWS, CALIBRATION_WIDTH = 20_000, 8192, 128
BYTES_PER_PAIR = 90.0  # of the pair set: scores, evidence, probabilities of two sweeps, and what a sweep makes of them
BYTES_PER_ENTITY = 420.0  # of the rankings of a refinement, and what they are put together from
BYTES_PER_EDGE = 60.0  # of the graphs and their relation counts
PAIRS_PER_ENTITY = 7.0  # by proposals of both sides, fewer than asked for: many entities have few neighbours
SEARCHED_PAIRS_PER_ENTITY = 14.0  # with the candidates of both directions
BASE_BYTES = 250e6  # the interpreter and its libraries
SHARE_OPEN = 0.5  # of the entities, after the first round


class Files(NamedTuple):
    """What is kept in files instead of in memory."""

    embeddings: bool = False
    pairs: bool = False


@dataclass(frozen=True)
class Stage:
    """One stage of a run: what it does, and what it is estimated to take.

    Attributes:
        name: What is done.
        seconds: The estimated time of all its repetitions together.
        gigabytes: The estimated memory of the process while it runs.

    Example:
        >>> import stea_fast as sf
        >>> print(sf.Plan((sf.Stage("spread by structure", 90.0, 1.5),), memory_limit=8.0))
        spread by structure                           90 s      1.5 GB
        estimated in all                              90 s      1.5 GB of 8.0 GB
    """

    name: str
    seconds: float
    gigabytes: float


@dataclass(frozen=True)
class Plan:
    """The stages of a run with estimated time and memory; it prints itself as a table.

    Attributes:
        stages: The stages in their order.
        memory_limit: The memory that may be taken, in gigabytes: what was asked for, or what the machine has left.
        embeddings_in_files: How many gigabytes of embeddings are kept in temporary files, since they would not fit
            beside the rest; 0 if all are in memory. The memory of the stages is then what they need without these.
        pairs_in_files: The same of the pairs that are refined, which go to files only if without the embeddings the
            rest would still not fit.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> [stage.name for stage in sf.SelfTraining(pair, preset="structural").plan().stages]
        ['spread by structure']
    """

    stages: tuple[Stage, ...]
    memory_limit: float
    embeddings_in_files: float = 0.0
    pairs_in_files: float = 0.0

    @property
    def seconds(self) -> float:
        """The estimated time of all stages."""
        return sum(stage.seconds for stage in self.stages)

    @property
    def gigabytes(self) -> float:
        """The largest estimated memory of a stage."""
        return max((stage.gigabytes for stage in self.stages), default=0.0)

    def check_memory(self) -> None:
        """Refuse a run that would not fit.

        Raises:
            MemoryError: A stage needs more than the limit; the message says which, and what to do.
        """
        if self.gigabytes > self.memory_limit:
            most = max(self.stages, key=lambda stage: stage.gigabytes)
            in_files = " and ".join(what for what, size in self._in_files() if size)
            needed = f"{most.gigabytes:.1f} GB" + (f" with {in_files} in files" if in_files else "")
            raise MemoryError(
                f"the stage {most.name!r} is estimated to need {needed}, and {self.memory_limit:.1f} GB "
                "may be taken; use preset 'structural', fewer dimensions (search.dimensions), or more memory"
            )

    def __str__(self) -> str:
        lines = [f"{stage.name:38}{_duration(stage.seconds):>12}{stage.gigabytes:9.1f} GB" for stage in self.stages]
        total = f"{'estimated in all':38}{_duration(self.seconds):>12}{self.gigabytes:9.1f} GB"
        lines.append(f"{total} of {self.memory_limit:.1f} GB")
        if in_files := " and ".join(f"{size:.1f} GB of {what}" for what, size in self._in_files() if size):
            lines.append(f"and {in_files} in files in {disk.temporary_folder()}")
        return "\n".join(lines)

    def _in_files(self) -> tuple[tuple[str, float], ...]:
        return ("embeddings", self.embeddings_in_files), ("pairs", self.pairs_in_files)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def is_long(pair: Pair) -> bool:
    """Whether a run takes long enough for a plan to be worth its second or two."""
    return len(pair.kg1.edges) + len(pair.kg2.edges) > LONG_RUN_EDGES


def plan_run(pair: Pair, config: SelfTrainingConfig) -> Plan:
    """The plan of a run of self-training: with what would not fit otherwise in files, embeddings before pairs."""
    limit = memory.available() + memory.resident()
    if config.memory is not None:
        limit = memory.size_in_bytes(config.memory, "memory")
    for files in _choices(pair, config):
        embeddings = _gigabytes_of_embeddings(pair, config) if files.embeddings else 0.0
        pairs = BYTES_PER_PAIR * _most_pairs(pair, config) / 1e9 if files.pairs else 0.0
        plan = Plan(tuple(_stages(pair, config, files)), limit / 1e9, embeddings, pairs)
        if plan.gigabytes <= plan.memory_limit:
            break
    return plan


def _choices(pair: Pair, config: SelfTrainingConfig) -> list[Files]:
    """What may be in files, least first: it takes time. Of a single shard the pairs are in memory in any case."""
    choices = [Files()]
    if can_be_in_files(config.encoder):
        choices.append(Files(embeddings=True))
    if config.encoder.device == "cpu" and _sweeps_jointly(config.method) and _num_shards(pair) > 1:
        choices.append(Files(choices[-1].embeddings, pairs=True))
    return choices


def _sweeps_jointly(method: SelfTrainingMethod) -> bool:
    """Whether a refinement of the run has pairs in shards."""
    return isinstance(method, Structural) or (
        isinstance(method, Stea) and (method.two_views or isinstance(method.plan.method(0, last=False), Joint))
    )


def can_be_in_files(encoder: EncoderConfig) -> bool:
    """Whether the embeddings of an encoder are written where they are to stay, instead of made in memory at once."""
    return encoder.name == "propagation" and encoder.device == "cpu"


def _gigabytes_of_embeddings(pair: Pair, config: SelfTrainingConfig) -> float:
    """Of the embeddings, and of what a search keeps beside them."""
    width, searched = _width(config, pair), config.search.dimensions
    copied: float = 0 if searched is None or searched >= width else searched
    if isinstance(config.method, Stea) and config.method.two_views and config.rounds:
        copied += SHARE_OPEN * (copied or width)
    return float(4.0 * (width + copied) * (pair.kg1.num_entities + pair.kg2.num_entities) / 1e9)


def _num_shards(pair: Pair) -> int:
    return len(parts_of((pair.kg1, pair.kg2)))


def _most_pairs(pair: Pair, config: SelfTrainingConfig) -> float:
    """About how many pairs the refinements have, at most."""
    each = PAIRS_PER_ENTITY if isinstance(config.method, Structural) else SEARCHED_PAIRS_PER_ENTITY
    return each * (pair.kg1.num_entities + pair.kg2.num_entities)


def _bytes_of_refinement(pair: Pair, config: SelfTrainingConfig, files: Files) -> float:
    """What a refinement has in memory beside the graphs: its pairs, or those of the shards at work and all rankings."""
    pairs = BYTES_PER_PAIR * _most_pairs(pair, config)
    if not files.pairs:
        return pairs
    entities = pair.kg1.num_entities + pair.kg2.num_entities
    shards = _num_shards(pair)
    return pairs * ThreadsExecutor().at_once(shards) / shards + BYTES_PER_ENTITY * entities


def _stages(pair: Pair, config: SelfTrainingConfig, files: Files) -> list[Stage]:
    """The stages, with some of what they hold in files."""
    sizes = pair.kg1.num_entities, pair.kg2.num_entities
    edges = len(pair.kg1.edges) + len(pair.kg2.edges)
    held = BASE_BYTES + BYTES_PER_EDGE * edges
    sweep, refining = rates().sweep * edges, _bytes_of_refinement(pair, config, files)
    method = config.method
    if isinstance(method, Structural):
        return [Stage("spread by structure", sweep * method.refinement.sweeps, (held + refining) / 1e9)]
    width = _width(config, pair)
    embedded = held + (0.0 if files.embeddings else 4.0 * width * sum(sizes))
    rounds = config.rounds + 1
    embedding = rates().embedding * edges * width * rounds
    stages = [
        Stage(f"{rounds} x embeddings of {width} dimensions", embedding, embedded / 1e9),
        *_searches(config, sizes, width, embedded, files),
    ]
    if isinstance(method, Stea):
        step = method.plan.method(0, last=False)
        sweeps = step.sweeps * rounds if isinstance(step, Joint) else rounds
        refined = (embedded + refining) / 1e9
        stages.append(Stage(f"{rounds} x refinement", 2 * sweep * sweeps, refined))
        if method.two_views:
            alone = (method.structure or STRUCTURAL).sweeps + 10 * config.rounds
            stages.append(Stage(f"{rounds} x refinement by structure alone", sweep * alone, refined))
    return stages


def _width(config: SelfTrainingConfig, pair: Pair) -> int:
    """How many dimensions the encoder gives; where only the encoder knows, as many as Dual-AMN."""
    if config.encoder.name != "propagation":
        return 768
    options = {key: value for key, value in config.encoder.options.items() if key != "dim"}
    return 16 * Propagation(pair.kg1, pair.kg2, **options).relation_dim


def _searches(
    config: SelfTrainingConfig, sizes: tuple[int, int], width: int, embedded: float, files: Files
) -> list[Stage]:
    """The search of everything, and those of what is open afterwards."""
    search = config.search
    width = width if search.dimensions is None else min(search.dimensions, width)
    opened = [round(SHARE_OPEN * size) for size in sizes]
    two_views = isinstance(config.method, Stea) and config.method.two_views
    stages = []
    for times, (rows, columns) in ((1, sizes), (config.rounds, opened if two_views else sizes)):
        engine = engine_for(search, rows, columns, width)
        share = share_seen(max(rows, columns)) if engine in APPROXIMATE else 1.0
        seconds = times * share * rates().product * work_of(search, rows, columns, width)
        kind = "approximate" if engine in APPROXIMATE else "exact"
        copied = 4.0 * width * (rows + columns) if two_views and not files.embeddings else 0.0
        needed = embedded + copied + 240.0 * sum(sizes)
        if times:
            stages.append(Stage(f"{times} x {kind} search of {rows:,} x {columns:,}", seconds, needed / 1e9))
    return stages


@dataclass(frozen=True)
class Rates:
    """Seconds on this machine: of a sweep per edge, of a product of a search, of a number of an edge's embedding."""

    sweep: float
    product: float
    embedding: float


@lru_cache(maxsize=1)
def rates() -> Rates:
    """Measured once per process, in a second or two."""
    pair = synthetic_pair(CALIBRATION_ENTITIES, seed=0, profile="dbp1m", seed_fraction=0.3)
    edges = len(pair.kg1.edges) + len(pair.kg2.edges)
    sweep = (_seconds_of_sweeps(pair, 3) - _seconds_of_sweeps(pair, 1)) / 2 / edges  # the first finds few pairs
    vectors = np.random.default_rng(0).standard_normal((2, CALIBRATION_ROWS, CALIBRATION_WIDTH), dtype=np.float32)
    begin = perf_counter()
    topk(vectors[0], vectors[1], 10, 0, progress=False)
    product = (perf_counter() - begin) / (CALIBRATION_ROWS**2 * CALIBRATION_WIDTH)
    embedding = (_seconds_of_embeddings(pair, 16) - _seconds_of_embeddings(pair, 8)) / (16 * 8) / edges
    return Rates(*(max(rate, 1e-12) for rate in (sweep, product, embedding)))


def _seconds_of_embeddings(pair: Pair, relation_dim: int) -> float:
    encoder = Propagation(pair.kg1, pair.kg2, relation_dim=relation_dim, dim=64)
    encoder.fit(pair.train)
    begin = perf_counter()
    encoder.embeddings()
    return perf_counter() - begin


def _seconds_of_sweeps(pair: Pair, count: int) -> float:
    begin = perf_counter()
    refine_by_structure(pair.kg1, pair.kg2, pair.train, k=10, method=replace(STRUCTURAL, sweeps=count))
    return perf_counter() - begin
