"""Sealed test links: a method can carry them to `evaluate` and do nothing else with them."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.data.sealed import ONLY_EVALUATE, SealedLinks, reveal
from stea_fast.encoders import demo


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(100, seed=1)


@pytest.mark.parametrize(
    "use",
    [
        np.asarray,
        np.array,
        list,
        dict,
        iter,
        lambda links: links[0],
        lambda links: links[:, 1],
        lambda links: [0, 0] in links,
        lambda links: np.concatenate([links, links]),
        lambda links: np.isin(3, links),
        lambda links: np.zeros((3, 3))[links],
    ],
)
@pytest.mark.parametrize("part", ["test", "links"])
def test_nothing_but_evaluate_reads_them(pair, part, use):
    with pytest.raises(TypeError, match=ONLY_EVALUATE):
        use(getattr(pair, part))


def test_a_method_that_takes_them_for_seeds_is_stopped(pair):
    with pytest.raises(TypeError, match=ONLY_EVALUATE):
        sf.refine(demo.candidates(pair), pair.kg1, pair.kg2, seeds=pair.test)


def test_they_become_no_tensor(pair):
    torch = pytest.importorskip("torch")
    with pytest.raises((TypeError, ValueError)):  # torch has words of its own
        torch.as_tensor(pair.test)


@pytest.mark.parametrize("name", ["T", "shape", "tolist", "data", "__array_interface__"])
def test_they_have_no_attribute_of_an_array(pair, name):
    with pytest.raises(AttributeError, match=ONLY_EVALUATE):
        getattr(pair.test, name)


def test_they_say_how_many_they_are_and_no_more(pair):
    assert len(pair.test) == len(pair.links) - len(pair.train) == 72
    assert repr(pair.test) == "SealedLinks(72 links, for sf.evaluate only)"
    assert "72 test links" in repr(pair)


def test_evaluate_takes_them_sealed_or_open(pair):
    found = demo.candidates(pair)
    assert str(sf.evaluate(found, pair.test)) == str(sf.evaluate(found, reveal(pair.test)))
    assert sf.paired_t_test(found, found, pair.test).n == 72
    assert sf.calibration_error(sf.refine(found, pair.kg1, pair.kg2, seeds=pair.train), pair.test).counts.sum() == 72


def test_arrays_are_sealed_with_the_pair_and_cannot_be_changed_later(pair):
    given = np.array([[1, 2], [3, 4]])
    own = replace(pair, test=given)
    given[:] = 0
    assert isinstance(own.test, SealedLinks)
    np.testing.assert_array_equal(reveal(own.test), [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="read-only"):
        reveal(own.test)[0] = 9


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda links: pickle.loads(pickle.dumps(links))])
def test_copies_are_sealed_too(pair, copied):
    other = copied(pair.test)
    assert isinstance(other, SealedLinks)
    np.testing.assert_array_equal(reveal(other), reveal(pair.test))


def test_what_holds_no_links_is_named(pair):
    with pytest.raises(ValueError, match=r"links must have shape \(n, 2\), got \(2, 3\)"):
        replace(pair, test=np.zeros((2, 3), dtype=np.int64))
