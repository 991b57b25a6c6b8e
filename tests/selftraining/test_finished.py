"""Finished runs: a checkpoint holds their result, and nothing of them is repeated."""

from __future__ import annotations

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.evaluation.auditing import arrays_of
from stea_fast.selftraining import loop, records

pytest.importorskip("safetensors")


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(200, seed=5, seed_fraction=0.1)


def training(pair, folder, method="stea", **options):
    encoder = sf.EncoderConfig(options={"dim": 16, "relation_dim": 4})
    return sf.SelfTraining(pair, encoder, method=method, rounds=1, checkpoint=folder, progress=False, **options)


def no_work(monkeypatch, *names):
    for name in names:
        monkeypatch.setattr(loop, name, lambda *a, **k: pytest.fail("a finished run is repeated"))


@pytest.mark.parametrize("method", ["stea", "mutual_nearest", "supervised", sf.Stea(refinement="product")])
def test_a_finished_run_gives_its_result_again_without_any_work(pair, tmp_path, monkeypatch, method):
    expected = training(pair, tmp_path, method).run()
    no_work(monkeypatch, "train", "searched", "refined", "checked_embeddings")
    told = []
    found = training(pair, tmp_path, method, callbacks=[told.append]).run()
    assert told == []
    assert found.history == expected.history
    bits = [dict((name, (a.dtype, a.shape, a.tobytes())) for name, a in arrays_of(each)) for each in (found, expected)]
    assert bits[0] == bits[1] and len(bits[0]) > 5


def test_what_holds_embeddings_is_there_as_soon_as_it_is_asked_for(pair, tmp_path, monkeypatch):
    expected = training(pair, tmp_path).run()
    run = training(pair, tmp_path)
    computed = []
    monkeypatch.setattr(run.encoder, "embeddings", lambda embed=run.encoder.embeddings: computed.append(1) or embed())
    found = run.run()
    rows, columns = np.arange(50), np.arange(50)[::-1]
    assert str(found.refinement.explain(*found.pairs[0])) == str(expected.refinement.explain(*expected.pairs[0]))
    assert computed == []
    np.testing.assert_array_equal(found.candidates.score(rows, columns), expected.candidates.score(rows, columns))
    np.testing.assert_array_equal(found.embeddings[1], expected.embeddings[1])
    assert computed == [1]  # once, for scores and embeddings
    again = [sf.refine(each.candidates, pair.kg1, pair.kg2, seeds=pair.train) for each in (found, expected)]
    np.testing.assert_array_equal(again[0].forward.probs, again[1].forward.probs)


class OfTensors:
    """An encoder that learns nothing, and gives tensors."""

    first_epochs = round_epochs = 1

    def __init__(self, pair, torch):
        generator = torch.Generator().manual_seed(0)
        self.sides = [torch.randn(kg.num_entities, 8, generator=generator) for kg in (pair.kg1, pair.kg2)]

    def fit(self, pairs, epochs):
        pass

    def embeddings(self):
        return tuple(self.sides)

    def state(self):
        return {"one": self.sides[0], "two": self.sides[1]}

    def load_state(self, state):
        self.sides = [state["one"], state["two"]]


def test_an_encoder_of_tensors_gives_tensors_again(pair, tmp_path):
    torch = pytest.importorskip("torch", reason="the trained encoders need PyTorch")
    expected, found = (
        sf.SelfTraining(pair, OfTensors(pair, torch), rounds=1, checkpoint=tmp_path).run() for _ in range(2)
    )
    assert isinstance(found.forward.indices, torch.Tensor) and isinstance(found.embeddings[0], torch.Tensor)
    for (name, a), (_, b) in zip(arrays_of(found), arrays_of(expected), strict=True):
        assert a.tobytes() == b.tobytes(), name


def test_a_result_that_depends_on_test_links_is_not_held(pair, tmp_path):
    """A checkpoint does not know of which test links it is, and `audit` must see the oracle read them."""

    def method(variant):
        return training(variant, tmp_path, sf.Stea(relations="oracle")).run()

    with pytest.raises(sf.AuditError, match="depends on the test links"):
        sf.audit(pair, method)


def test_records_come_back_with_every_number_as_it_was():
    arrays: dict = {}
    ranking = sf.Ranking(np.array([[1], [-1]]), np.array([[0.5], [0.0]], dtype=np.float32))
    relations = sf.RelationAlignment(np.eye(2), np.eye(2), default=0.25)
    given = [ranking, relations, np.float32(0.1), 0.1, None, ("text", True)]
    plain = records.packed(given, "part", arrays)
    found = records.unpacked(plain, arrays, {})
    assert [a.tobytes() for _, a in arrays_of(found)] == [a.tobytes() for _, a in arrays_of(given)]
    assert found[1].default == 0.25 and found[2].dtype == np.float32 and found[3:] == (0.1, None, ("text", True))


def test_a_record_that_a_checkpoint_cannot_hold_is_named():
    with pytest.raises(TypeError, match=r"part\.0 is a object, which a checkpoint cannot hold"):
        records.packed([object()], "part", {})
