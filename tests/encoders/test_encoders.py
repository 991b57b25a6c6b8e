"""Encoders: they learn, repeat themselves by seed, continue from their state, and equal the plain mathematics."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import stea_fast as sf
from stea_fast import encoders
from stea_fast.data.sealed import reveal

torch = pytest.importorskip("torch", reason="the trained encoders need PyTorch")

from stea_fast.encoders import _negatives, _ops, _ranking, _reflection  # noqa: E402
from stea_fast.encoders._graph import JointGraph, joint_triples  # noqa: E402
from stea_fast.encoders.base import TrainingError  # noqa: E402

SMALL = {
    "dual_amn": ({"dim": 16, "batch_size": 32}, 10),
    "rrea": ({"dim": 16}, 30),
    "gcn_align": ({"dim": 32}, 40),
    "alinet": ({"dims": (64, 48, 32), "learning_rate": 0.01, "check": 100}, 60),
    "propagation": ({"dim": 64, "relation_dim": 32}, 1),
}
TRAINED = [name for name in encoders.NAMES if name != "propagation"]


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(num_entities=200, seed=3, seed_fraction=0.4)


def make(name, pair, **options):
    return encoders.make(name, pair.kg1, pair.kg2, **{**SMALL[name][0], **options})


def hit1(encoder, pair):
    """Share of the test sources whose counterpart is nearest among the test targets, by cosine."""
    first, second = (torch.nn.functional.normalize(torch.as_tensor(e), dim=1) for e in encoder.embeddings())
    sources, targets = reveal(pair.test).T.copy()
    scores = first[sources] @ second[targets].T
    return float((scores >= scores.diagonal()[:, None]).sum(1).eq(1).float().mean())


@pytest.mark.parametrize("name", encoders.NAMES)
def test_learns(name, pair):
    encoder = make(name, pair)
    seen = []
    encoder.fit(pair.train, SMALL[name][1], progress=lambda done, total: seen.append((done, total)))
    first, second = encoder.embeddings()
    assert first.shape[0] == pair.kg1.num_entities and second.shape[0] == pair.kg2.num_entities
    assert first.shape[1] == second.shape[1]
    assert all(np.asarray(e).dtype == np.float32 for e in (first, second))
    assert hit1(encoder, pair) > 5 / len(pair.test)  # five times chance
    assert seen[-1][1] == SMALL[name][1]


@pytest.mark.parametrize("name", encoders.NAMES)
def test_is_determined_by_its_seed(name, pair):
    runs = []
    for seed in (1, 1, 2):
        torch.manual_seed(len(runs))  # the global generator must not matter
        encoder = make(name, pair, seed=seed)
        encoder.fit(pair.train, 2)
        runs.append(np.concatenate([np.asarray(e) for e in encoder.embeddings()]))
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


@pytest.mark.parametrize("warm_start", [True, False])
@pytest.mark.parametrize("name", encoders.NAMES)
def test_continues_bit_for_bit(name, warm_start, pair):
    whole, other = make(name, pair, warm_start=warm_start), make(name, pair, warm_start=warm_start)
    whole.fit(pair.train, 2)
    other.load_state(whole.state())
    for encoder in (whole, other):
        encoder.fit(pair.train[::-1], 2)
    for a, b in zip(whole.embeddings(), other.embeddings(), strict=True):
        assert np.array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("name", TRAINED)
def test_does_not_touch_the_global_generator_or_the_denormals(name, pair):
    before = torch.random.get_rng_state()
    make(name, pair).fit(pair.train, 1)
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.tensor([1e-310], dtype=torch.float64).mul(1.0).item() != 0


def test_state_is_a_copy(pair):
    encoder = make("dual_amn", pair)
    state = encoder.state()
    before = {name: value.clone() for name, value in state.items()}
    encoder.fit(pair.train, 1)
    assert all(torch.equal(before[name], state[name]) for name in state)


def gradients(loss, tensors):
    return torch.autograd.grad(loss, tensors)


def close(a, b, tolerance=1e-4):
    return float((a - b).norm()) <= tolerance * float(b.norm()) + 1e-7


def obvious_layers(graph, x, unit, k, activation):
    """Entity by entity, straight from the formulas, in the heads' own dimensions."""
    dim, levels = k.shape[-1], [getattr(torch, activation)(x)]
    for level in range(len(k)):
        rows = []
        for i in range(graph.num_entities):
            edges = range(graph.indptr[i], graph.indptr[i + 1])
            parts = []
            for h in range(k.shape[1]):
                ys, logits = [], []
                for e in edges:
                    near, rho = levels[-1][graph.columns[e], h * dim : (h + 1) * dim], unit[graph.sets[e]]
                    ys.append(near - 2 * (near @ rho) * rho)
                    logits.append(k[level, h, 0] @ ys[-1] + k[level, h, 1] @ rho)
                none = x.new_zeros(dim)
                parts.append(torch.softmax(torch.stack(logits), 0) @ torch.stack(ys) if ys else none)
            rows.append(getattr(torch, activation)(torch.cat(parts)))
        levels.append(torch.stack(rows))
    return torch.cat(levels, dim=1)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_layers_equal_the_formulas(activation):
    pair = sf.synthetic_pair(num_entities=30, seed=1, num_relations=4)
    graph = JointGraph.join(pair.kg1, pair.kg2)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(graph.num_entities, 10, generator=generator)
    unit = torch.nn.functional.normalize(torch.randn(len(graph.members.indptr) - 1, 5, generator=generator), dim=1)
    k, weight = torch.randn(2, 2, 2, 5, generator=generator), torch.randn(len(x), 30, generator=generator)
    inputs = [tensor.requires_grad_() for tensor in (x, unit, k)]
    fast = _reflection.Reflection(graph, torch.device("cpu"))(*inputs, activation)
    expected = gradients((fast * weight).sum(), inputs)
    for other in (obvious_layers, _reflection.plain):
        z = other(graph, *inputs, activation)
        assert torch.allclose(fast, z, atol=1e-5)
        assert all(close(a, b) for a, b in zip(expected, gradients((z * weight).sum(), inputs), strict=True))


def test_layers_of_some_rows_are_those_rows(pair):
    encoder = make("dual_amn", pair, dim=8)
    inputs = [encoder.parameters[name] for name in ("entities", "relations", "attention")]
    rows = torch.tensor([3, 17, 18, pair.kg1.num_entities, encoder.num_entities - 1])
    weight = torch.randn(len(rows), 48, generator=torch.Generator().manual_seed(0))
    some, whole = encoder._embed(rows), encoder._embed()
    assert torch.equal(some, whole[rows])
    found, expected = (gradients((z * weight).sum(), inputs) for z in (some, whole[rows]))
    assert all(torch.equal(a, b) or close(a, b) for a, b in zip(found, expected, strict=True))


def obvious_loss(z, left, right, gamma, scale):
    """Distances written out, one pair at a time."""
    total = 0.0
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        p = (z[a] - z[b]).square().sum()
        for end in (a, b):
            mask = torch.ones(len(z))
            mask[[a, b]] = 0
            u = (p - (z[end] - z).square().sum(1) + gamma) * mask
            total = total + torch.logsumexp(scale * (u - u.mean().detach()) / u.std(correction=0).detach() + 10, 0)
    return total / len(left)


@pytest.mark.parametrize("spread", [0.1, 1.0])
@pytest.mark.parametrize("count", [1, 300])
def test_loss_of_hard_negatives_equals_the_formula(count, spread, monkeypatch):
    generator = torch.Generator().manual_seed(count)
    z = (spread * torch.randn(700, 12, generator=generator)).requires_grad_()
    left, right = (
        torch.randperm(350, generator=generator)[:count],
        350 + torch.randperm(350, generator=generator)[:count],
    )
    for cut, tolerance in ((_negatives.CUT, 1e-2), (20.0, 1e-4)):  # what is easily told apart has no gradient
        monkeypatch.setattr(_negatives, "CUT", cut)
        fast = _negatives.hard_negative_loss(z, left, right, 1.0, 30.0)
        (gradient,) = gradients(fast, [z])
        for other in (obvious_loss, _negatives.plain):
            loss = other(z, left, right, 1.0, 30.0)
            assert float(fast.detach()) == pytest.approx(float(loss.detach()), rel=1e-5)
            assert close(gradient, gradients(loss, [z])[0], tolerance)
        cut_there = _negatives.plain(z, left, right, 1.0, 30.0, cut)  # as other devices do
        assert close(gradient, gradients(cut_there, [z])[0], 1e-4)


@pytest.mark.parametrize("drawn", [700, 60])
def test_sampled_negatives_are_the_formula_on_the_sample(drawn, monkeypatch):
    monkeypatch.setattr(_negatives, "CUT", 20.0)
    generator = torch.Generator().manual_seed(drawn)
    z = torch.randn(700, 12, generator=generator).requires_grad_()
    pairs = torch.tensor([[3, 400], [20, 500], [7, 699]])
    chosen = torch.randperm(700, generator=generator)[:drawn]
    pool, places = _negatives.sampled(pairs, chosen)
    rows = z[pool]
    loss = _negatives.hard_negative_loss(rows, *places.T, 1.0, 30.0)
    kept = sorted({*chosen.tolist(), *pairs.flatten().tolist()})
    expected = obvious_loss(
        z[kept], *torch.tensor([[kept.index(end) for end in pair] for pair in pairs.tolist()]).T, 1, 30
    )
    assert torch.equal(rows[places[:, 1]], z[pairs[:, 1]])
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-5)
    found, written = (gradients(each, [z])[0] for each in (loss, expected))
    assert close(found, written)
    assert not found[[i for i in range(700) if i not in kept]].any()


def test_a_sample_of_all_entities_is_training_without_one(pair):
    one, other = (make("dual_amn", pair, num_negatives=number) for number in (None, 400))
    fewer = make("dual_amn", pair, num_negatives=100)
    for encoder in (one, other, fewer):
        encoder.fit(pair.train, 5)
    assert torch.equal(one.embeddings()[0], other.embeddings()[0])
    assert not torch.equal(one.embeddings()[0], fewer.embeddings()[0])
    assert hit1(fewer, pair) > 5 / len(pair.test)
    with pytest.raises(ValueError, match="num_negatives must be between 1"):
        make("dual_amn", pair, num_negatives=0)


def test_parts_are_joined_to_unit_rows():
    generator = torch.Generator().manual_seed(0)
    parts = [torch.randn(50, width, generator=generator).requires_grad_() for width in (3, 8, 5)]
    weight = torch.randn(50, 16, generator=generator)
    fast = _ops.joined_units(tuple(parts))
    normalize = torch.nn.functional.normalize
    slow = normalize(torch.cat([normalize(part, dim=1) for part in parts], dim=1), dim=1)
    assert torch.allclose(fast, slow, atol=1e-6)
    for a, b in zip(gradients((fast * weight).sum(), parts), gradients((slow * weight).sum(), parts), strict=True):
        assert close(a, b, 1e-5)
    assert not _ops.joined_units((torch.zeros(2, 3), torch.zeros(2, 3))).any()


def test_ranking_loss_equals_the_formula():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(50, 7, generator=generator).requires_grad_()
    triplets = torch.randint(50, (200, 3), generator=generator)
    fast, slow = _ranking.l1_ranking_loss(z, triplets, 3.0), _ranking.plain(z, triplets, 3.0)
    assert float(fast.detach()) == pytest.approx(float(slow.detach()), rel=1e-5)
    assert close(gradients(fast, [z])[0], gradients(slow, [z])[0], 1e-6)


def test_dropout_zeroes_its_share_and_keeps_the_mean():
    x = torch.ones(1000, 100, requires_grad=True)
    out = _ops.dropout(x, 0.3, torch.Generator().manual_seed(0))
    assert float((out == 0).float().mean()) == pytest.approx(0.3, abs=0.01)
    assert float(out.mean().detach()) == pytest.approx(1.0, abs=0.01)
    assert torch.equal(gradients(out.sum(), [x])[0], out.detach())
    assert _ops.dropout(x, 0.0, torch.Generator()) is x


def test_joint_graph_is_that_of_the_formulas(pair):
    graph = JointGraph.join(pair.kg1, pair.kg2)
    between = {}
    incident = [set() for _ in range(graph.num_entities)]
    for h, r, t in joint_triples(pair.kg1, pair.kg2).tolist():
        between.setdefault((h, t), set()).add(r)
        between.setdefault((t, h), set()).add(r + graph.num_relations)
        incident[h].add(r + graph.num_relations)
        incident[t].add(r)
    assert list(zip(graph.rows.tolist(), graph.columns.tolist(), strict=True)) == sorted(between)
    members = np.split(graph.members.columns, graph.members.indptr[1:-1])
    for i, j, s in zip(graph.rows, graph.columns, graph.sets, strict=True):
        assert set(members[s]) == between[i, j]
    found = np.split(graph.relation_mean.columns, graph.relation_mean.indptr[1:-1])
    assert [set(columns.tolist()) for columns in found] == incident
    assert np.array_equal(graph.columns[graph.reverse], graph.rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("dbp15k_zh_en", (38960, 3024, 259545)),
        ("dbp15k_ja_en", (39594, 2452, 270029)),
        ("dbp15k_fr_en", (39654, 2111, 353543)),
    ],
)
def test_sizes_of_dbp15k(name, sizes, data_folder):
    if not (data_folder / name).is_dir():
        pytest.skip(f"no data in {data_folder / name}; set STEA_DATA")
    pair = sf.load_pair(data_folder / name, 0.3)
    graph = JointGraph.join(pair.kg1, pair.kg2)
    assert (graph.num_entities, graph.num_relations, len(graph.rows)) == sizes
    assert np.diff(graph.indptr).min() > 0
    assert len(pair.train) == 4500


@pytest.mark.parametrize("name", encoders.NAMES)
def test_bad_pairs_are_refused(name, pair):
    encoder = make(name, pair)
    with pytest.raises(ValueError, match="at least one"):
        encoder.fit(np.empty((0, 2), dtype=np.int64), 1)
    with pytest.raises(ValueError, match=r"pairs\[:, 1\] holds 200, but there are only 200 target entities"):
        encoder.fit([[0, 200]], 1)
    with pytest.raises(TypeError, match="integers"):
        encoder.fit([[0.5, 1.0]], 1)


@pytest.mark.parametrize("name", TRAINED)
def test_a_loss_that_is_nan_names_its_epoch(name, pair):
    encoder = make(name, pair, warm_start=True)
    for value in encoder.parameters.values():
        value.data.fill_(torch.nan)
    with pytest.raises(TrainingError, match=r"nan in epoch 1 of 3"):
        encoder.fit(pair.train, 3)


def test_unknown_names_and_foreign_states_are_refused(pair):
    with pytest.raises(ValueError, match=r"unknown encoder 'nonsense'; known are dual_amn"):
        encoders.make("nonsense", pair.kg1, pair.kg2)
    with pytest.raises(ValueError, match="state does not fit"):
        make("dual_amn", pair, dim=8).load_state(make("dual_amn", pair).state())
    with pytest.raises(RuntimeError, match="call fit"):
        make("propagation", pair).embeddings()


@pytest.mark.parametrize("name", ["propagation", "dual_amn"])
def test_a_device_that_is_not_there_is_named(pair, name, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"device 'cuda' cannot be used: .* sees no CUDA device"):
        make(name, pair, device="cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match="device 'cuda:7' cannot be used: torch sees 1 CUDA device"):
        make(name, pair, device="cuda:7")
    with pytest.raises(ValueError, match="device must be a torch device such as 'cpu'"):
        make(name, pair, device="gpu")


def test_torch_is_imported_only_for_trained_encoders():
    code = (
        "import sys, stea_fast as sf; from stea_fast import encoders; p = sf.synthetic_pair(50);"
        "e = encoders.make('propagation', p.kg1, p.kg2, dim=8, relation_dim=4); e.fit(p.train, 1); e.embeddings();"
        "assert not {'torch', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_propagation_has_as_many_dimensions_as_fit_but_not_too_few():
    from stea_fast.encoders.propagation import Propagation

    pair = sf.synthetic_pair(num_entities=100, seed=0)
    for most, expected in ((1e9, 64), (4 * 16 * 200 * 20, 20), (1.0, 16)):
        assert Propagation(pair.kg1, pair.kg2, relation_dim=64, embedding_bytes=most).relation_dim == expected
