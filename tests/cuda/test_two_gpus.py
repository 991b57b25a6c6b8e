"""The CUDA backend on two GPUs that pose: right results, on the right device and stream, without a stray context."""

from __future__ import annotations

import numpy as np
import pytest
from device_calls import moved

import stea_fast as sf
from stea_fast.encoders import demo

torch = pytest.importorskip("torch", reason="GPUs pose through torch")
pytestmark = pytest.mark.slow  # compiles the kernels and the bindings for the CPU
MOST_COPIED = 1024  # elements of an array that may come to the host while a refinement goes on


@pytest.mark.parametrize("method", ["product", "paper"])
@pytest.mark.parametrize("device", ["cuda:0", "cuda:1"])
def test_refining_where_the_tensors_lie(gpus, harness, pair, device, method):
    candidates = demo.candidates(pair)
    wanted = sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train, method=method, backend="native")
    graphs = [kg.to(device) for kg in (pair.kg1, pair.kg2)]
    there = moved(candidates, device)
    gpus.copied.clear()
    found = sf.refine(there, *graphs, seeds=pair.train, method=method)
    assert max(gpus.copied) <= MOST_COPIED
    index = torch.device(device).index
    assert {number for number, _ in gpus.exports} == {index} and {stream for _, stream in gpus.exports} == {
        gpus.streams[0]
    }
    assert harness.harness_contexts() == 1 << index
    assert found.pairs.device == torch.device(device) and found.pairs.tolist() == wanted.pairs.tolist()
    np.testing.assert_allclose(found.forward.probs.cpu(), wanted.forward.probs, rtol=1e-3, atol=1e-5)


def test_the_legacy_default_stream_is_named_as_such(gpus, harness, pair):
    gpus.streams = [0, 0]
    harness.harness_expect_stream(None)
    sf.refine(moved(demo.candidates(pair), "cuda:1"), pair.kg1, pair.kg2, method="product")
    assert {stream for _, stream in gpus.exports} == {1}


def test_graphs_say_where_to_work_if_candidates_do_not(gpus, pair):
    candidates = demo.candidates(pair)
    wanted = sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train, method="product")
    graphs = [kg.to("cuda:1") for kg in (pair.kg1, pair.kg2)]
    found = sf.refine(candidates, *graphs, seeds=pair.train, method="product")
    assert isinstance(found.pairs, np.ndarray) and {number for number, _ in gpus.exports} == {1}
    np.testing.assert_array_equal(found.pairs, wanted.pairs)


def test_a_refiner_works_where_its_graphs_are(gpus, pair):
    graphs = [kg.to("cuda:1") for kg in (pair.kg1, pair.kg2)]
    embeddings = demo.encode(pair, dim=16)
    wanted = sf.Refiner(pair.kg1, pair.kg2, pair.train, refinement="product", backend="native")(*embeddings)
    step = sf.Refiner(*graphs, pair.train, refinement="product")
    found = step(*(torch.tensor(side, device="cuda:1") for side in embeddings))
    assert found.tolist() == wanted.tolist() and {number for number, _ in gpus.exports} == {1}


def test_graphs_and_candidates_on_two_devices_are_refused(gpus, pair):
    candidates = moved(demo.candidates(pair), "cuda:0")
    with pytest.raises(ValueError, match=r"on one device, got cuda:0 and cuda:1; kg\.to\(device\)"):
        sf.refine(candidates, pair.kg1.to("cuda:1"), pair.kg2, method="product")
    with pytest.raises(ValueError, match="on one device, got cuda:0 and cuda:1"):
        sf.refine(demo.candidates(pair), pair.kg1.to("cuda:1"), pair.kg2.to("cuda:0"), method="product")


def test_tensors_on_two_devices_are_refused(gpus, pair):
    one, other = (moved(demo.candidates(pair), f"cuda:{number}") for number in (0, 1))
    with pytest.raises(ValueError, match="must be on one device, got cuda:0 and cuda:1"):
        sf.refine(sf.Candidates(one.forward, other.backward), pair.kg1, pair.kg2)
    sides = demo.encode(pair, dim=16)
    with pytest.raises(ValueError, match="emb1 and emb2 must be on one device, got cuda:0 and cuda:1"):
        sf.topk(torch.tensor(sides[0], device="cuda:0"), torch.tensor(sides[1], device="cuda:1"), 5)


def test_what_the_joint_refinement_needs_stays_on_the_device(gpus, pair):
    """Beliefs, relations, proposals, union, evidence, posteriors, balancing and mutual best of one sweep."""
    from stea_fast._backends import native
    from stea_fast._backends.cuda import Kernels
    from stea_fast._backends.device_data import DeviceBeliefs
    from stea_fast._backends.tensors import TensorBackend
    from stea_fast.data.device_graph import DeviceGraph
    from stea_fast.types import Beliefs

    device = torch.device("cuda:1")
    graphs, ids = (pair.kg1, pair.kg2), demo.candidates(pair).forward.indices
    there = [DeviceGraph.upload(kg, device) for kg in graphs]
    n1, n2 = (kg.num_entities for kg in graphs)
    seeds = [Beliefs(*_beliefs_of(pair.train[:, order], n)) for order, n in (([0, 1], n1), ([1, 0], n2))]
    opened = [np.ones(n, dtype=bool) for n in (n1, n2)]
    indptr = np.arange(n1 + 1) * ids.shape[1]

    def pairs_of(of_columns, place):
        table = np.asarray(of_columns.cpu() if hasattr(of_columns, "cpu") else of_columns)
        columns, places = np.nonzero(table >= 0)
        return place(table[columns, places]), place(columns.astype(np.int32))

    def sweep(kernels, kgs, held, place, alignment):
        table = kernels.strengths(alignment, *kgs)
        columns = place(np.sort(ids, axis=1).astype(np.int32).ravel())
        options = {"k": 4, "budget": 5000, "witnesses": "neighbour"}
        of_rows, _ = kernels.proposals(*kgs, held[0], table, *map(place, opened), forward=True, rows=(0, n1), **options)
        of_columns, _ = kernels.proposals(
            *kgs[::-1], held[1], table, *map(place, opened[::-1]), forward=False, rows=(0, n2), **options
        )
        united = kernels.pairs.union(place(indptr), columns, of_rows, pairs_of(of_columns, place), n2)
        evidence, number = kernels.evidence_of_pairs(*kgs, *united, held[0], table, rows=(0, n1), witnesses="neighbour")
        values = 4.0 * (evidence.astype(np.float64) if place is np.asarray else evidence.double())
        by_column = kernels.pairs.transpose(*united, n2)
        sums = kernels.pairs.log_sums(united[0], None, values), kernels.pairs.log_sums(*by_column, values)
        probs = kernels.pairs.joint_probabilities(*united, values, *sums)
        tails, factors = (place(np.full(n, 0.1)) for n in (n1, n2))
        for _ in range(3):
            of_rows, column_sums = kernels.pairs.scale_rows(*united, probs, tails, factors)
            factors = 1.0 / (column_sums + 0.1)
        balanced = kernels.pairs.scaled(*united, probs, of_rows, factors)
        matched = kernels.pairs.mutual_best(*united, balanced, kernels.pairs.largest(*by_column, balanced))
        return *united, evidence, number, balanced, matched

    alignment = sf.RelationAlignment.uniform(*graphs, 0.3)
    wanted = sweep(native, graphs, seeds, np.asarray, alignment)
    held = [DeviceBeliefs.upload(each, device) for each in seeds]
    gpus.copied.clear()
    found = sweep(TensorBackend(Kernels(device)), there, held, lambda x: torch.tensor(x, device=device), alignment)
    assert max(gpus.copied) <= MOST_COPIED
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.device == device
        np.testing.assert_allclose(ours.cpu().numpy(), theirs, rtol=1e-4, atol=1e-12)


def _beliefs_of(links, size):
    order = np.argsort(links[:, 0])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(links[:, 0], minlength=size))])
    return indptr, links[order, 1].astype(np.int32), np.ones(len(links), dtype=np.float32)
