"""Stages of a round on a GPU that poses: what the host finds, and no long array comes to the host."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

import stea_fast as sf
from stea_fast import encoders
from stea_fast._util.arrays import to_numpy
from stea_fast.encoders import demo
from stea_fast.encoders.checked import checked_embeddings
from stea_fast.search.unsettled import topk_of_unsettled
from stea_fast.selftraining.searching import in_fewer_dimensions

torch = pytest.importorskip("torch", reason="GPUs pose through torch")
DEVICE = "cuda:1"
SETTLED = np.stack([np.arange(40), np.arange(40) + 7], axis=1)


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(300, seed=2)


@pytest.fixture(scope="module")
def sides(pair):
    return demo.encode(pair, dim=16)


@contextmanager
def staying(plain_gpus):
    """No long array is copied to the host meanwhile."""
    plain_gpus.forget()
    yield
    assert not plain_gpus.long_copies, "\n".join(plain_gpus.long_copies)


def there(*arrays):
    return [torch.tensor(array, device=DEVICE) for array in arrays]


def held(array):
    return array.held.numpy() if hasattr(array, "held") else np.asarray(array)


def assert_same_search(found, wanted, atol):
    for ours, theirs in zip((found.forward, found.backward), (wanted.forward, wanted.backward), strict=True):
        assert ours.indices.device == torch.device(DEVICE)
        np.testing.assert_array_equal(held(ours.indices), theirs.indices)
        np.testing.assert_allclose(held(ours.scores), theirs.scores, atol=1e-6)
    for ours, theirs in zip(found.log_partition, wanted.log_partition, strict=True):
        np.testing.assert_allclose(held(ours), theirs, atol=atol)


def test_long_copies_are_told_with_what_made_them(plain_gpus, sides):
    (tensor,) = there(sides[0])
    plain_gpus.forget()
    to_numpy(tensor[0], "short")
    assert plain_gpus.copied == [tensor.shape[1]] and not plain_gpus.long_copies
    for copy in (lambda: to_numpy(tensor, "long"), tensor.tolist, lambda: torch.empty(tensor.shape).copy_(tensor)):
        plain_gpus.forget()
        copy()
        assert plain_gpus.copied == [tensor.numel()] and len(plain_gpus.long_copies) == 1
    plain_gpus.forget()
    to_numpy(tensor, "long")
    (told,) = plain_gpus.long_copies
    assert told.startswith(f"{tensor.numel()} elements by ") and "arrays.py" in told


@pytest.mark.parametrize("engine", ["auto", "partitioned"])
@pytest.mark.parametrize("csls", [0, 5])
def test_what_is_open_is_searched_there(plain_gpus, sides, pair, engine, csls):
    options = {"engine": engine, "beta": 6.0}
    wanted = topk_of_unsettled(*sides, SETTLED, 8, csls, **options)
    with staying(plain_gpus):
        found = topk_of_unsettled(*there(*sides), SETTLED, 8, csls, **options)
    # Of what is drawn for the sums of an approximate search, rounding decides whether it counts as the last candidate.
    assert_same_search(found, wanted, 1e-3 if engine == "auto" else 0.05)
    assert found.recall == wanted.recall and found.engine == ("torch" if engine == "auto" else engine)
    rows, columns = np.arange(300), np.arange(300)[::-1].copy()
    np.testing.assert_allclose(held(found.score(*there(rows, columns))), wanted.score(rows, columns), atol=1e-5)


def test_zero_vectors_are_in_no_cell(plain_gpus, sides):
    zeros = np.zeros_like(sides[0])
    for first, second in ((sides[0] * (np.arange(300) != 7)[:, None], sides[1]), (zeros, zeros)):
        wanted = sf.topk(first, second, 5, 3, engine="partitioned", beta=2.0)
        with staying(plain_gpus):
            found = sf.topk(*there(first, second), 5, 3, engine="partitioned", beta=2.0)
        assert_same_search(found, wanted, 0.05)


def test_rankings_are_judged_there(plain_gpus, sides, pair):
    candidates = sf.topk(*sides, 5)
    on_device = sf.topk(*there(*sides), 5)
    for pool in ("test", "all"):
        for direction in ("forward", "backward"):
            with staying(plain_gpus):
                found = sf.evaluate(on_device, pair.test, pool, direction=direction)
            wanted = sf.evaluate(candidates, pair.test, pool, direction=direction)
            assert found.hits == pytest.approx(wanted.hits) and found.num_links == wanted.num_links
            for name in ("hit1", "hit10", "mrr", "mean_rank"):
                assert getattr(found, name) == pytest.approx(getattr(wanted, name), rel=1e-12)
    assert sf.paired_t_test(on_device, candidates, pair.test).difference == 0.0
    bad = replace(on_device.forward, scores=on_device.forward.scores / 0)
    with pytest.raises(ValueError, match="scores must be finite"):
        sf.evaluate(sf.Candidates(bad), pair.test)
    short = replace(on_device.forward, scores=on_device.forward.scores[:, :2])
    with pytest.raises(ValueError, match=r"shape \[n, k\], got \(300, 5\) and \(300, 2\)"):
        sf.evaluate(sf.Candidates(short), pair.test)


class Given:
    """Stands where an encoder would."""

    def __init__(self, *embeddings):
        self.given = embeddings

    def embeddings(self):
        return self.given


@pytest.mark.parametrize(("row", "value"), [(0, np.nan), (299, np.inf)])
def test_embeddings_are_checked_there(plain_gpus, sides, pair, row, value):
    with staying(plain_gpus):
        checked_embeddings(Given(*there(*sides)), pair.kg1, pair.kg2)
    wrong = sides[1].copy()
    wrong[row, 3] = value
    with pytest.raises(ValueError, match=f"embeddings of kg2 hold NaN or infinity, first in row {row}"):
        checked_embeddings(Given(*there(sides[0], wrong)), pair.kg1, pair.kg2)


def test_embeddings_lose_dimensions_there(plain_gpus, sides):
    wanted = in_fewer_dimensions(sides, 9)
    with staying(plain_gpus):
        found = in_fewer_dimensions(tuple(there(*sides)), 9)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(held(ours), theirs, atol=1e-6)


def test_training_is_that_of_the_host(plain_gpus, pair):
    def trained(device):
        encoder = encoders.make("dual_amn", pair.kg1, pair.kg2, device=device, num_negatives=200, batch_size=30)
        encoder.fit(pair.train, 2)
        encoder.fit(pair.train, 1)  # a second round
        return encoder.embeddings()

    wanted = trained("cpu")
    with staying(plain_gpus):
        found = trained(DEVICE)
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.device == torch.device(DEVICE)
        # A step of RMSprop is as long for a gradient that is all rounding: single elements differ by more.
        assert (np.abs(held(ours) - theirs.numpy()) > 1e-4).mean() < 1e-3


STAGES = {
    "encoders.checked": lambda pair, sides: checked_embeddings(Given(*sides), pair.kg1, pair.kg2),
    "evaluation.ranks": lambda pair, sides: sf.evaluate(sf.topk(*sides, 5), pair.test),
    "search.unsettled": lambda pair, sides: topk_of_unsettled(*sides, SETTLED, 8, 0, beta=6.0),
    "selftraining.searching": lambda pair, sides: in_fewer_dimensions(sides, 9),
}


@pytest.mark.parametrize("module", STAGES)
def test_a_seeded_copy_is_noticed(plain_gpus, sides, pair, module, monkeypatch):
    monkeypatch.setattr(f"stea_fast.{module}.where_it_is", to_numpy)
    with pytest.raises(AssertionError, match=f"elements by .*{module.split('.')[1]}"), staying(plain_gpus):
        STAGES[module](pair, there(*sides))
