"""Problems for the kernels: written for the runner of the harness, and judged by the reference."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from hypothesis import strategies as st
from test_parity import problems as graph_problems

from stea_fast import KG, Beliefs, Pair, RelationAlignment
from stea_fast._backends import numba, reference
from stea_fast._backends.counts import scale_bits
from stea_fast._util.sparse import offsets_of_counts
from stea_fast.data.sealed import reveal
from stea_fast.refinement.beliefs import soft, transpose
from stea_fast.refinement.selection import mutual_best


@dataclass(frozen=True, eq=False)
class Case:
    """What the kernels read: two graphs, candidates with scores in both directions, beliefs and relations."""

    kg1: KG
    kg2: KG
    candidates: np.ndarray  # int32 [n, k]
    scores: np.ndarray  # float32 [n, k]
    back: tuple[np.ndarray, np.ndarray]  # candidates and scores of the other direction
    beliefs: Beliefs
    relations: RelationAlignment

    def arrays(self) -> list[np.ndarray]:
        """In the order of the runner's `Problem`."""
        sizes = [
            self.kg1.num_entities, self.kg2.num_entities, self.kg1.num_relations, self.kg2.num_relations,
            self.candidates.shape[1], self.back[0].shape[1], scale_bits(self.kg1),
        ]  # fmt: skip
        strengths = numba.strengths(self.relations, self.kg1, self.kg2).forward
        graphs = [self.kg1.indptr, self.kg1.edges, self.kg2.indptr, self.kg2.edges]
        beliefs = [*self.beliefs, *transpose(self.beliefs, self.kg2.num_entities)]
        pairs = self.second_half()
        return [np.array(sizes), *graphs, self.candidates, *beliefs, *strengths, self.scores, *self.back, *pairs]

    def second_half(self) -> tuple[np.ndarray, np.ndarray]:
        """The candidates of the second half of the rows as sparse pairs: int64 offsets and int32 columns."""
        rows = self.candidates[self.kg1.num_entities // 2 :]
        return offsets_of_counts((rows >= 0).sum(axis=1)), rows[rows >= 0]


@st.composite
def cases(draw):
    """Graphs of any shape; scores with ties, so that the order of the candidates decides."""
    kg1, kg2, candidates, beliefs, relations = draw(graph_problems())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return with_scores(kg1, kg2, candidates, beliefs, relations, rng, k_back=int(rng.integers(1, kg1.num_entities + 1)))


def with_scores(kg1, kg2, candidates, beliefs, relations, rng, k_back):
    """Add scores and the candidates of the other direction."""
    back = np.stack([rng.permutation(kg1.num_entities)[:k_back] for _ in range(kg2.num_entities)]).astype(np.int32)
    back[rng.random(back.shape) < 0.2] = -1
    scores, back_scores = (rng.integers(-2, 3, shape).astype(np.float32) for shape in (candidates.shape, back.shape))
    return Case(kg1, kg2, candidates, scores, (back, back_scores), beliefs, relations)


def star_case(degree: int, seed: int) -> Case:
    """Hubs among the rows and among the candidates."""
    from test_parity import star

    rng = np.random.default_rng(seed)
    kg1, kg2 = star(degree), star(degree + 10)
    n1, n2 = kg1.num_entities, kg2.num_entities
    candidates = np.stack([np.r_[0, 1 + rng.permutation(n2 - 1)[:3]] for _ in range(n1)]).astype(np.int32)
    beliefs = soft(candidates, rng.random(candidates.shape, dtype=np.float32))
    relations = RelationAlignment(rng.random((6, 6), dtype=np.float32), rng.random((6, 6), dtype=np.float32), 0.1)
    return with_scores(kg1, kg2, candidates, beliefs, relations, rng, k_back=3)


def search_case(degree: int, seed: int) -> Case:
    """Rows with few beliefs around them, and a hub among their candidates: its edges are searched, not walked."""
    rng = np.random.default_rng(seed)
    case = star_case(degree, seed)
    believed = rng.integers(1, case.kg2.num_entities, (case.kg1.num_entities, 1)).astype(np.int32)
    believed[rng.random(len(believed)) < 0.6] = -1
    believed[0] = 0
    return replace(case, beliefs=soft(believed, rng.random(believed.shape, dtype=np.float32)))


def parallel_case(degree: int, seed: int) -> Case:
    """Several relations between the same two entities: in small rows with a hub among the candidates, and in hubs."""
    rng = np.random.default_rng(seed)

    def fan(leaves: int) -> KG:
        ends, relations = np.repeat(np.arange(1, leaves + 1), 3), np.tile(np.arange(3), leaves)
        triples = np.stack([np.zeros_like(ends), relations, ends], axis=1)
        return KG(triples[rng.random(len(triples)) < 0.8], leaves + 1, 3)

    kg1, kg2 = fan(degree), fan(degree + 10)
    n1, n2 = kg1.num_entities, kg2.num_entities
    candidates = np.stack([np.r_[0, 1 + rng.permutation(n2 - 1)[:3]] for _ in range(n1)]).astype(np.int32)
    believed = rng.integers(1, n2, (n1, 1)).astype(np.int32)
    beliefs = soft(believed, rng.random(believed.shape, dtype=np.float32))
    relations = RelationAlignment(rng.random((6, 6), dtype=np.float32), rng.random((6, 6), dtype=np.float32), 0.1)
    return with_scores(kg1, kg2, candidates, beliefs, relations, rng, k_back=3)


def certain(case: Case) -> Case:
    """The same with beliefs and relations that are certain: every factor is as small as it may be."""
    beliefs = Beliefs(case.beliefs.indptr, case.beliefs.targets, np.ones_like(case.beliefs.weights))
    ones = np.ones((6, 6), dtype=np.float32)
    return replace(case, beliefs=beliefs, relations=RelationAlignment(ones, ones, 0.0))


def faint(case: Case) -> Case:
    """The same with relations that hardly say anything: in 1 - x all digits of x are lost."""
    relations = case.relations
    weak = (np.float32(1e-6) * part.toarray() for part in (relations.sub12, relations.sub21))
    return replace(case, relations=RelationAlignment(*weak, 0.0))


def dense_case(seed: int, entities: int = 40) -> Case:
    """Random graphs in which most rows have more beliefs around them than a small table takes."""
    rng = np.random.default_rng(seed)
    kg1, kg2 = (KG(rng.integers(0, (entities, 3, entities), (4 * entities, 3)), entities, 3) for _ in range(2))
    candidates = np.stack([rng.permutation(entities)[:5] for _ in range(entities)]).astype(np.int32)
    beliefs = soft(candidates, rng.random(candidates.shape, dtype=np.float32))
    return with_scores(kg1, kg2, candidates, beliefs, RelationAlignment.uniform(kg1, kg2, 0.3), rng, k_back=5)


def wide_case(seed: int, entities: int = 44, hubs: int = 4) -> Case:
    """More candidates than a warp has lanes; hubs of more than 64 edges on both sides, often several to the same."""
    rng = np.random.default_rng(seed)

    def graph() -> KG:
        spokes = np.stack(np.meshgrid(np.arange(hubs), np.arange(2), np.arange(hubs, entities)), axis=-1).reshape(-1, 3)
        return KG(spokes[rng.random(len(spokes)) < 0.9], entities, 2)

    kg1, kg2 = graph(), graph()
    assert min(np.sort(kg.degrees)[-hubs] for kg in (kg1, kg2)) > 64
    candidates = np.stack([rng.permutation(entities)[:40] for _ in range(entities)]).astype(np.int32)
    candidates[rng.random(candidates.shape) < 0.1] = -1
    beliefs = soft(candidates[:, :3], rng.random((entities, 3), dtype=np.float32))
    relations = RelationAlignment(rng.random((4, 4), dtype=np.float32), rng.random((4, 4), dtype=np.float32), 0.1)
    return with_scores(kg1, kg2, candidates, beliefs, relations, rng, k_back=3)


def shapes(seed: int, size: int = 40) -> list[Case]:
    """Hubs, searched candidates, dense graphs, parallel relations, certainty, and many candidates of large rows.

    Some rows are larger than what a warp files at a time, and some candidates too large for a filter.
    """
    batch = [star_case(size, seed), search_case(size + 80, seed), dense_case(seed), parallel_case(size + 20, seed)]
    batch += [certain(star_case(20, seed)), certain(parallel_case(20, seed)), faint(star_case(20, seed))]
    return [*batch, wide_case(seed)]


def real_case(pair: Pair, entities: int = 300) -> Case:
    """The best connected linked entities of a real pair, with the true candidate and random ones."""
    rng = np.random.default_rng(0)
    every = reveal(pair.links)
    ranks = pair.kg1.degrees[every[:, 0]] + pair.kg2.degrees[every[:, 1]]
    links = every[np.argsort(-ranks, kind="stable")[:entities]]
    kg1, kg2 = (_cut(kg, links[:, side]) for side, kg in enumerate((pair.kg1, pair.kg2)))
    candidates, back = _true_and_guessed(entities, 5, rng), _true_and_guessed(entities, 6, rng)
    beliefs = soft(candidates, rng.random(candidates.shape, dtype=np.float32))
    shape = (2 * kg1.num_relations, 2 * kg2.num_relations)
    dense = rng.random(shape, dtype=np.float32) * (rng.random(shape) < 0.2)
    case = with_scores(kg1, kg2, candidates, beliefs, RelationAlignment(dense, dense.T, 0.02), rng, k_back=7)
    return replace(case, back=(back, case.back[1]))


def _true_and_guessed(entities: int, guesses: int, rng: np.random.Generator) -> np.ndarray:
    """Candidates of graphs that share their ids: the true one first, -1 where it was guessed again."""
    true = np.arange(entities)[:, None]
    guessed = np.stack([rng.permutation(entities)[:guesses] for _ in range(entities)])
    return np.concatenate([true, np.where(guessed == true, -1, guessed)], axis=1).astype(np.int32)


def _cut(kg: KG, entities: np.ndarray) -> KG:
    new_id = np.full(kg.num_entities, -1)
    new_id[entities] = np.arange(len(entities))
    triples = kg.triples.astype(np.int64)
    triples[:, 0], triples[:, 2] = new_id[triples[:, 0]], new_id[triples[:, 2]]
    return KG(triples[(triples[:, [0, 2]] >= 0).all(axis=1)], len(entities), kg.num_relations)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one configuration made of one case."""

    evidence: np.ndarray
    witnesses: np.ndarray  # their number
    strongest: np.ndarray  # evidence where pairs of neighbours are the witnesses
    strongest_witnesses: np.ndarray
    of_pairs: np.ndarray  # the same for the sparse pairs of the second half of the rows
    num: dict[int, int]
    den: np.ndarray
    partner: np.ndarray
    value: np.ndarray

    def same_bits(self, other: Outcome) -> bool:
        """Nothing differs, not even in the last bit."""
        arrays = ("evidence", "strongest", "witnesses", "of_pairs", "den", "partner", "value")
        return self.num == other.num and all(np.array_equal(getattr(self, x), getattr(other, x)) for x in arrays)


def pack(batch: list[Case]) -> bytes:
    """The runner's file of problems."""
    file = io.BytesIO()
    for array in [np.array([len(batch)]), *(array for case in batch for array in case.arrays())]:
        data = np.ascontiguousarray(array).tobytes()
        file.write(np.int64(len(data)).tobytes())
        file.write(data)
    return file.getvalue()


def unpack(data: bytes, batch: list[Case], configurations: int) -> list[list[Outcome]]:
    """The outcomes of each case in each configuration."""
    file = io.BytesIO(data)

    def read(dtype):
        return np.frombuffer(file.read(int(np.frombuffer(file.read(8), np.int64)[0])), dtype)

    def outcome(case):
        kinds = (np.float32, np.int32, np.float32, np.int32)
        evidence = [read(dtype).reshape(case.candidates.shape) for dtype in kinds]
        evidence.append(read(np.float32))
        keys, num, den, overflow = read(np.uint64), read(np.uint64), read(np.uint64), read(np.int32)
        assert not overflow[0], "the table of the counts is too small for this case"
        counted = {int(key) - 1: int(n) for key, n in zip(keys[keys > 0], num[keys > 0], strict=True)}
        return Outcome(*evidence, counted, den.astype(np.int64), read(np.int32), read(np.float32))

    return [[outcome(case) for _ in range(configurations)] for case in batch]


@lru_cache(maxsize=16)
def expected(case: Case) -> Outcome:
    """What the reference says."""
    rows = (0, case.kg1.num_entities)
    strengths = reference.strengths(case.relations, case.kg1, case.kg2)
    given = case.kg1, case.kg2, case.candidates, case.beliefs, strengths
    evidence = reference.evidence_and_witnesses(*given, forward=True, rows=rows)
    strongest = reference.evidence_and_witnesses(*given, forward=True, rows=rows, witnesses="neighbour")
    counts = reference.relation_counts(case.kg1, case.kg2, case.beliefs, rows=rows)
    pairs, values = mutual_best((case.candidates, case.scores), case.back)
    partner, value = np.full(rows[1], -1, np.int32), np.zeros(rows[1], np.float32)
    partner[pairs[:, 0]], value[pairs[:, 0]] = pairs[:, 1], values
    num = dict(zip(counts.keys.tolist(), counts.num.tolist(), strict=True))
    half = slice(case.kg1.num_entities // 2, None)
    of_pairs = strongest[0][half][case.candidates[half] >= 0]
    return Outcome(*evidence, *strongest, of_pairs, num, counts.den, partner, value)


def assert_agrees(found: Outcome, wanted: Outcome, bits: int) -> None:
    """Evidence within 1e-5, counts within 1e-9 (and 1e-12 statements), witnesses and mutual pairs exactly."""
    np.testing.assert_allclose(found.evidence, wanted.evidence, rtol=1e-5, atol=1e-30)
    np.testing.assert_allclose(found.strongest, wanted.strongest, rtol=1e-5, atol=1e-30)
    np.testing.assert_allclose(found.of_pairs, wanted.of_pairs, rtol=1e-5, atol=1e-30)
    np.testing.assert_array_equal(found.witnesses, wanted.witnesses)
    np.testing.assert_array_equal(found.strongest_witnesses, wanted.witnesses)
    unit = 2.0**-bits
    keys = sorted(found.num.keys() | wanted.num.keys())
    for ours, theirs in (
        ([found.num.get(key, 0) for key in keys], [wanted.num.get(key, 0) for key in keys]),
        (found.den, wanted.den),
    ):
        np.testing.assert_allclose(np.array(ours) * unit, np.array(theirs) * unit, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found.partner, wanted.partner)
    np.testing.assert_allclose(found.value, wanted.value, rtol=1e-6)
