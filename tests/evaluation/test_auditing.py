"""The audit: it passes for every honest method, and finds the oracle and hidden cheats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.cli.main import main
from stea_fast.data.sealed import reveal
from stea_fast.evaluation.auditing import shuffled_test_links
from stea_fast.selftraining.methods import METHODS

SMALL = {"rounds": 1, "encoder": sf.EncoderConfig(options={"dim": 32, "relation_dim": 8})}


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(300, seed=2, seed_fraction=0.15)


def run(pair, **options):
    return sf.SelfTraining(pair, **{**SMALL, **options}).run()


PRESETS = ["structural", pytest.param("fast", marks=pytest.mark.slow)]


@pytest.mark.parametrize("method", sorted({*METHODS} - {"structural"}))  # which takes no encoder
def test_it_passes_for_every_method(pair, method):
    found = sf.audit(pair, lambda given: run(given, method=method))
    assert found.numbers > 1000 and "result.candidates.forward.scores" in found.arrays
    assert ("result.refinement.forward.probs" in found.arrays) == (method == "stea")


def test_it_passes_for_the_paper_s_step_and_a_trained_encoder(pair):
    pytest.importorskip("torch", reason="the trained encoders need PyTorch")
    encoder = sf.EncoderConfig(name="dual_amn", options={"dim": 8})
    options = {"encoder": encoder, "method": sf.Stea(refinement="paper")}
    assert sf.audit(pair, lambda given: run(given, **options)).numbers > 1000


def named(pair):
    """The same pair with names: two thirds of the links have equal ones, the others are spelt a little otherwise."""
    words = ["bara", "nilo", "tesu", "moka", "redi", "fuga", "lopi", "sado"]
    names2 = [
        f"http://b.org/{words[e % 8]}_{words[e // 8 % 8]}_{words[e // 64 % 8]}" for e in range(pair.kg2.num_entities)
    ]
    names1 = [f"http://a.org/other{words[e % 8]}{words[e // 8 % 8]}" for e in range(pair.kg1.num_entities)]
    for source, target in reveal(pair.links).tolist():
        names1[source] = names2[target].replace("b.org", "a.org") + ("" if source % 3 else "us")
    graphs = [
        sf.KG(kg.triples, kg.num_entities, kg.num_relations, entity_names=names)
        for kg, names in ((pair.kg1, names1), (pair.kg2, names2))
    ]
    return replace(pair, kg1=graphs[0], kg2=graphs[1])


@pytest.mark.parametrize("preset", PRESETS)
def test_it_passes_for_alignments_with_names_and_without_seeds(pair, preset):
    given = named(pair)
    unseeded = replace(given, train=given.train[:0])
    found = sf.audit(unseeded, lambda each: sf.align(each, preset=preset, rounds=1, progress=False))
    assert found.numbers > 1000 and any("probs" in name for name in found.arrays)


@pytest.mark.parametrize("preset", PRESETS)
def test_names_in_the_input_leave_alignments_by_structure_bit_identical(pair, preset):
    bare, with_names = (
        sf.align(each, preset=preset, rounds=1, clues=None, progress=False) for each in (pair, named(pair))
    )
    for name in ("targets", "probs", "status", "considered", "considered_probs"):
        np.testing.assert_array_equal(getattr(bare.links, name), getattr(with_names.links, name))
    np.testing.assert_array_equal(bare.forward.indices, with_names.forward.indices)
    np.testing.assert_array_equal(bare.forward.scores, with_names.forward.scores)


def test_it_fails_for_the_oracle(pair):
    with pytest.raises(sf.AuditError, match=r"result\..* depends on the test links"):
        sf.audit(pair, lambda given: run(given, method=sf.Stea(relations="oracle")))


def test_it_fails_for_a_method_that_trains_on_one_test_link(pair):
    def leaky(given):
        return run(replace(given, train=np.concatenate([given.train, reveal(given.test)[:1]])))

    with pytest.raises(sf.AuditError, match="depends on the test links"):
        sf.audit(pair, leaky)


def test_it_fails_for_a_number_that_was_tuned_on_test_links(pair):
    def tuned(given):
        result = run(given)
        return {"pairs": result.pairs, "threshold": sf.evaluate(result, given.test).hit1}

    with pytest.raises(sf.AuditError, match=r"result\['threshold'\] depends"):
        sf.audit(pair, tuned)


def test_it_fails_where_the_parts_of_the_result_differ(pair):
    first = int(reveal(pair.test)[0, 1])
    with pytest.raises(sf.AuditError, match="different parts"):
        sf.audit(pair, lambda given: {"a": 1} if reveal(given.test)[0, 1] == first else {"b": 1})


def test_shuffling_keeps_seeds_and_test_entities_and_changes_their_partners(pair):
    other = shuffled_test_links(pair)
    before, after = reveal(pair.test), reveal(other.test)
    np.testing.assert_array_equal(before[:, 0], after[:, 0])
    assert set(before[:, 1]) == set(after[:, 1])
    assert (before[:, 1] != after[:, 1]).mean() > 0.9
    assert other.train is pair.train and other.kg1 is pair.kg1
    links = dict(reveal(other.links).tolist())
    assert links == {**dict(pair.train.tolist()), **dict(after.tolist())}


def test_an_audit_that_would_prove_nothing_is_refused(pair):
    with pytest.raises(ValueError, match="no array"):
        sf.audit(pair, lambda given: None)
    with pytest.raises(ValueError, match="at least two test links"):
        sf.audit(replace(pair, test=pair.train[:1]), run)


@pytest.fixture(scope="module")
def folder(pair, tmp_path_factory):
    """The pair as files, in the format of OpenEA."""
    path = tmp_path_factory.mktemp("pair")
    for number, kg in ((1, pair.kg1), (2, pair.kg2)):
        lines = [f"{number}:{h}\tr{r}\t{number}:{t}\n" for h, r, t in kg.triples.tolist()]
        (path / f"rel_triples_{number}").write_text("".join(lines), encoding="utf-8")
    links = [f"1:{source}\t2:{target}\n" for source, target in reveal(pair.links).tolist()]
    (path / "ent_links").write_text("".join(links), encoding="utf-8")
    return path


def command(folder, *options):
    return main(["audit", str(folder), "--seed-fraction", "0.15", "--rounds", "1", *options])


def test_the_command_prints_what_was_compared(folder, capsys):
    assert command(folder) == 0
    shown = capsys.readouterr().out
    assert "audit passed" in shown and "all bits equal" in shown


def test_the_command_fails_for_the_oracle(folder, capsys):
    assert command(folder, "--relations", "oracle") == 5
    assert "audit FAILED: result." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--method", "magic"], "method must be one of"), (["--seed-fraction", "2"], "seed_fraction must be")],
)
def test_the_command_names_bad_input(folder, options, words, capsys):
    assert command(folder, *options) == 1
    assert words in capsys.readouterr().err


def test_the_command_names_a_folder_that_is_not_there(tmp_path, capsys):
    assert command(tmp_path / "nowhere") == 1
    assert "nowhere" in capsys.readouterr().err
