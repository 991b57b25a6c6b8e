"""What entities are called: by properties and languages, by the words in their IRIs, or by a file of names."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.data.local_names import local_names

DATA = Path(os.environ.get("STEA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
WORDS = [
    "Berlin",
    "New_York",
    "K%C3%B6ln",
    "柏林",
    "Saint-Denis",
    "1984",
    "AC/DC",
    "U2",
    "Apollo_11",
    "2001:_A_Space_Odyssey",
]
READABLE = [
    "Berlin",
    "New York",
    "Köln",
    "柏林",
    "Saint-Denis",
    "1984",
    "AC/DC",
    "U2",
    "Apollo 11",
    "2001: A Space Odyssey",
]


def graph(statements, entity_names=None, num_entities=3) -> sf.KG:
    attributes = sf.Attributes.from_statements(statements, num_entities)
    return sf.KG([[0, 0, 1]], num_entities, entity_names=entity_names, attributes=attributes)


def in_language(text, language):
    return sf.Value(text, "", language)


# --- properties and languages ---


@pytest.mark.parametrize(
    "name",
    [LABEL, "rdfs:label", "http://www.w3.org/2004/02/skos/core#prefLabel", "http://xmlns.com/foaf/0.1/name",
     "http://schema.org/name", "https://schema.org/name", "http://purl.org/dc/terms/title", "name", "Label"],
)  # fmt: skip
def test_values_of_the_usual_properties_are_names(name):
    labels = sf.labels_of(graph([(1, name, "Berlin"), (1, "http://a/population", 5)]))
    assert (labels.entity.tolist(), list(labels.text)) == ([1], ["Berlin"])
    assert labels.counts == {name: 1} and labels.source == f"{name} (1 entities)"


def test_other_properties_can_be_asked_for_and_the_best_comes_first():
    kg = graph([(0, "alias", "Big Apple"), (0, "called", "New York"), (0, LABEL, "ignored"), (1, "alias", "Berlin")])
    labels = sf.labels_of(kg, properties=["called", "alias"])
    assert labels.of(0) == ["New York", "Big Apple"] and labels.of(1) == ["Berlin"]
    assert labels.counts == {"called": 1, "alias": 1}


def test_a_name_that_an_entity_has_twice_counts_once():
    kg = graph(
        [(0, LABEL, in_language("Berlin", "de")), (0, LABEL, in_language("Berlin", "en")), (0, "name", "Berlin")]
    )
    assert list(sf.labels_of(kg).text) == ["Berlin"]


def test_the_first_language_that_an_entity_has_counts_then_none_then_any():
    kg = graph([
        (0, LABEL, in_language("Cologne", "en-gb")), (0, LABEL, in_language("Köln", "de")), (0, LABEL, "KOELN"),
        (1, LABEL, "no language"), (1, LABEL, in_language("Berlin", "fr")),
        (2, LABEL, in_language("Wien", "fr")), (2, LABEL, in_language("Vienna", "it")),
    ])  # fmt: skip
    assert [sf.labels_of(kg, languages=["de", "en"]).of(e) for e in range(2)] == [["Köln"], ["no language"]]
    assert sf.labels_of(kg, languages=["EN"]).of(0) == ["Cologne"]
    assert sorted(sf.labels_of(kg, languages=["de"]).of(2)) == ["Vienna", "Wien"]
    assert sorted(sf.labels_of(kg).of(0)) == ["Cologne", "KOELN", "Köln"]


def test_a_pair_is_named_in_the_language_that_both_graphs_have():
    kg1 = graph([(e, LABEL, in_language(f"{e} {lang}", lang)) for e in range(3) for lang in ("de", "en")])
    kg2 = graph([(e, LABEL, in_language(f"{e} en", "en-us")) for e in range(2)] + [(2, LABEL, in_language("x", "fr"))])
    labels1, labels2 = sf.labels_of_pair(sf.make_pair(kg1, kg2, []))
    assert list(labels1.text) == ["0 en", "1 en", "2 en"] and list(labels2.text) == ["0 en", "1 en", "x"]
    german, _ = sf.labels_of_pair(sf.make_pair(kg1, kg2, []), languages=["de"])
    assert list(german.text) == ["0 de", "1 de", "2 de"]


def test_graphs_without_a_common_language_are_named_in_any():
    kg1, kg2 = graph([(0, LABEL, in_language("Berlin", "de"))]), graph([(0, LABEL, in_language("柏林", "zh"))])
    assert [list(labels.text) for labels in sf.labels_of_pair(sf.make_pair(kg1, kg2, []))] == [["Berlin"], ["柏林"]]


@pytest.mark.parametrize("argument", ["properties", "languages"])
def test_one_text_instead_of_several_is_an_error(argument):
    with pytest.raises(TypeError, match=rf"{argument} must be a sequence of texts, got 'de'"):
        sf.labels_of(graph([]), **{argument: "de"})


def test_one_label_shared_by_all_is_the_name_of_all():
    labels = sf.labels_of(graph([(e, LABEL, "thing") for e in range(3)]))
    assert [labels.of(e) for e in range(3)] == [["thing"]] * 3


# --- words in ids ---


@pytest.mark.parametrize("prefix", ["http://dbpedia.org/resource/", "http://a.org/onto#", "pkg:", ""])
def test_the_local_part_of_an_id_is_a_name_where_ids_carry_words(prefix):
    padding = [
        f"{prefix}{word}_{other}" for word in ("Lake", "River", "Saint") for other in ("Anna", "Maria", "John", "Paul")
    ]
    found = local_names([f"{prefix}{word}" for word in WORDS] + padding * 2)
    assert found[: len(WORDS)] == READABLE


OPAQUE = {
    "wikidata": [f"http://www.wikidata.org/entity/Q{i * 37}" for i in range(200)],
    "numbers": [str(i) for i in range(200)],
    "synsets": [f"{i * 7919:08}-{'nvar'[i % 4]}" for i in range(200)],
    "freebase": [f"/m/0{np.base_repr(i * 7919 + 10**6, 36).lower()}" for i in range(200)],
    "hashes": [f"http://a/{hashlib.sha1(bytes([i])).hexdigest()}" for i in range(200)],
    "several prefixes": [f"http://a/{('person', 'city', 'river')[i % 3]}_{i}" for i in range(200)],
    "blank nodes": [f"_:Berlin{'x' * i}" for i in range(200)],
}


@pytest.mark.parametrize("kind", OPAQUE)
def test_keys_are_no_names(kind):
    assert set(local_names(OPAQUE[kind])) == {""}


def test_namespaces_are_judged_one_by_one():
    words = [f"http://a.org/{first}_{second}" for first in WORDS[:5] for second in WORDS[:5]]
    found = local_names(OPAQUE["wikidata"] + words)
    assert set(found[:200]) == {""} and "" not in found[200:]


@pytest.mark.parametrize(
    "name", ["", "http://", "http://a.org", "http://a.org/", "//", "#", ":", "a" * 10_000, "/" * 3000]
)
def test_ids_that_are_nothing_but_separators_have_no_name(name):
    assert local_names([name] * 30) == [""] * 30


def test_percent_signs_that_are_no_text_stay():
    assert local_names(["http://a.org/100%_Wolf", "http://a.org/%FF_x"]) == ["100% Wolf", "%FF x"]


def test_entities_without_a_label_are_called_by_their_ids_and_the_source_says_so():
    kg = graph([(1, LABEL, "Berlin")], entity_names=["http://a.org/New_York", "http://a.org/B", "_:x"])
    labels = sf.labels_of(kg)
    assert labels.entity.tolist() == [0, 1] and list(labels.text) == ["New York", "Berlin"]
    assert labels.counts == {LABEL: 1, "local part of the id": 1} and labels.num_named == 2
    assert list(sf.labels_of(kg, local_parts=False).text) == ["Berlin"]
    assert sf.labels_of(sf.KG([[0, 0, 1]])).source == "nothing: no entity has a name"


# --- names that are given ---


def test_a_file_of_names_counts_before_what_the_graph_says(tmp_path):
    (tmp_path / "names.tsv").write_text(
        "b\tBerlin\nb\tSpree-Athen\na\t  New \t York \nb\tBerlin\na\t\n", encoding="utf-8"
    )
    kg = sf.KG([[0, 0, 1]], entity_names=["a", "b"])
    pair = sf.make_pair(kg, kg, [], names=(tmp_path / "names.tsv", None))
    labels1, labels2 = sf.labels_of_pair(pair)
    assert [labels1.of(e) for e in range(2)] == [["New York"], ["Berlin", "Spree-Athen"]]
    assert labels1.source == "names.tsv (2 entities)"
    assert list(labels2.text) == ["a", "b"]


def test_names_can_be_given_as_texts():
    kg = sf.KG([[0, 0, 1]])
    pair = sf.make_pair(kg, kg, [], names=(["Berlin", None], ["", "Köln"]))
    assert (list(pair.names1.text), pair.names2.entity.tolist(), pair.names1.source) == (
        ["Berlin"], [1], "given names (1 entities)",
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"names\[0\] must be a name for each of 2 entities, got 1"):
        sf.make_pair(kg, kg, [], names=(["Berlin"], None))
    with pytest.raises(TypeError, match="got int"):
        sf.make_pair(kg, kg, [], names=([1, 2], None))
    with pytest.raises(ValueError, match=r"names\[1\] are of 2 entities, and the graph has 3"):
        sf.make_pair(kg, sf.KG([[0, 0, 2]]), [], names=(None, pair.names1))


def test_a_file_that_names_no_entity_is_an_error_that_says_why(tmp_path):
    (tmp_path / "names.tsv").write_text("x\tBerlin\n")
    kg = sf.KG([[0, 0, 1]], entity_names=["a", "b"])
    with pytest.raises(
        ValueError, match=r"names no entity of the graph; the first problem is .*names\.tsv:1: x is no entity"
    ):
        sf.make_pair(kg, kg, [], names=(tmp_path / "names.tsv", None))


def test_names_of_a_real_folder_follow_the_permutation_of_ids():
    folder = DATA / "dbp15k_fr_en"
    if not folder.exists():
        pytest.skip(f"{folder} is absent")
    pair = sf.load_pair(folder, names=("translated_names_1", None))
    lines = (folder / "translated_names_1").read_text(encoding="utf-8").splitlines()
    name_of = dict(line.split("\t") for line in lines)
    for entity in range(0, pair.kg1.num_entities, 500):
        assert pair.names1.of(entity) == [name_of[str(pair.ids1[entity])].strip()]
    assert len(sf.labels_of_pair(pair)[1]) == pair.kg2.num_entities
