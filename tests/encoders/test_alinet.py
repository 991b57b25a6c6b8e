"""AliNet beyond what all encoders share: refitting on all pairs, and edges lent by guessed pairs."""

from __future__ import annotations

import numpy as np
import pytest

import stea_fast as sf
from stea_fast import encoders
from stea_fast.data.sealed import reveal

torch = pytest.importorskip("torch", reason="the trained encoders need PyTorch")


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(num_entities=200, seed=3, seed_fraction=0.4)


def make(pair, **options):
    return encoders.make("alinet", pair.kg1, pair.kg2, dims=(64, 48, 32), learning_rate=0.01, **options)


def test_refits_on_all_pairs_for_as_many_epochs_as_the_first_training_took(pair):
    seen = []
    encoder = make(pair, check=2, refit=True)
    encoder.fit(pair.train, 200, progress=lambda done, total: seen.append((done, total)))
    begin = [done for done, _ in seen].index(1, 1)
    assert seen[begin - 1][0] == seen[-1][0] < 200  # stopped by the held-out pairs, then trained as long again
    assert np.array_equal(encoder.known - [0, pair.kg1.num_entities], pair.train)
    held_out = make(pair, check=2)
    held_out.fit(pair.train, 200)
    assert len(held_out.known) == len(pair.train) - int(0.2 * len(pair.train))


def test_augments_with_free_entities_nearest_to_each_other(pair):
    encoder = make(pair, check=2, augment=True)
    encoder.fit(pair.train, 9)  # the fourth check comes before the ninth epoch
    guessed = encoder.guessed - [0, pair.kg1.num_entities]
    assert len(guessed) > 0
    for side in (0, 1):
        assert not set(guessed[:, side]) & set(pair.train[: len(encoder.known), side])
        assert len(set(guessed[:, side])) == len(guessed)
    truth = {tuple(link) for link in reveal(pair.test)}
    assert sum(tuple(link) in truth for link in guessed) > 0.2 * len(guessed)  # chance: 1 in 120
    plain = make(pair, check=2)
    plain.load_state({**encoder.state(), "guessed": torch.zeros((0, 2), dtype=torch.int64)})
    copy = make(pair)
    copy.load_state(encoder.state())
    assert all(torch.equal(a, b) for a, b in zip(encoder.embeddings(), copy.embeddings(), strict=True))
    assert not torch.equal(encoder.embeddings()[0], plain.embeddings()[0])  # the guesses are part of the graph


def plain_loss(encoder, pairs):
    """The loss as the formulas have it, with a normed copy and a vector per pair and per triple."""
    p, bn = encoder.parameters, 1.001**-0.5

    def normed(name, x):
        return bn * p[f"{name}_scale"] * x + p[f"{name}_shift"]

    def one_hop(name, x):
        return torch.tanh(encoder.one_hop @ (normed(name, x) @ p[name]) + p[f"{name}_bias"])

    x, two = p["vectors"], encoder.two_hop
    y = normed("two", p["vectors"])
    own, near = (torch.tanh((y @ p[name] * y).sum(1)) for name in ("two_own", "two_near"))
    logits = torch.full((len(x), len(x)), -torch.inf)
    values = two.values * (own[two.rows_on_device] + near[two.columns_on_device])
    logits = logits.index_put((two.rows_on_device, two.columns_on_device), torch.nn.functional.leaky_relu(values, 0.2))
    near, far = normed("gate", one_hop("one_1", x)), normed("gate", torch.tanh(logits.softmax(1) @ (y @ p["two"])))
    gate = torch.relu(torch.tanh(far @ p["gate"]))
    first = torch.tanh((1 - gate) * near + gate * far)
    units = [torch.nn.functional.normalize(part, dim=1) for part in (first, one_hop("one_2", first), x)]
    z = torch.cat(units, dim=1) * 3**-0.5
    positive, negative, (ends, count) = pairs
    near, far = ((z[some[:, 0]] - z[some[:, 1]]).square().sum(1) for some in (positive, negative))
    d = (z[ends[:, 0]] - z[ends[:, 1]]).view(-1, count, z.shape[1])
    direction = torch.nn.functional.normalize(d.mean(1, keepdim=True), dim=2)
    pushed = (encoder.margin - far).relu().sum()
    return near.sum() + encoder.negative_weight * pushed + encoder.relation_weight * (d - direction).square().sum()


@pytest.mark.parametrize("epochs", [1, 5])  # without near negatives, and with them
def test_loss_and_gradients_equal_the_formulas(pair, epochs):
    encoder = make(pair, check=2)
    encoder.fit(pair.train, epochs)
    state, chosen = encoder.state(), torch.arange(20)
    loss = encoder.loss(chosen)
    found = torch.autograd.grad(loss, list(encoder.parameters.values()))
    encoder.load_state(state)  # the same draws again
    pairs = encoder.train[chosen], encoder._negative_pairs(chosen), encoder._relation_ends()
    expected = plain_loss(encoder, pairs)
    wanted = torch.autograd.grad(expected, list(encoder.parameters.values()))
    assert abs(loss.item() - expected.item()) < 1e-4 * expected.item()
    for name, one, other in zip(encoder.parameters, found, wanted, strict=True):
        assert (one - other).norm() < 1e-4 * other.norm(), name
