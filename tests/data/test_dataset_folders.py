"""Loading dataset folders: every format, every split, and the real data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stea_fast.data.dataset_folders import load_pair
from stea_fast.data.pair import Pair
from stea_fast.data.sealed import reveal

DATA = Path(os.environ.get("STEA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))

DBP15K = {
    "triples_1": "0\t7\t1\n1\t5\t2\n2\t7\t3\n",
    "triples_2": "10\t9\t11\n11\t9\t12\n12\t20\t10\n",
    "ent_ids_1": "0\tzero\n1\tone\n2\ttwo\n3\tthree\n4\tfour\n",
    "ent_ids_2": "10\tZehn\n11\tElf\n12\tZwölf\n",
    "rel_ids_1": "5\tfive\n7\tseven\n",
    "ref_ent_ids": "0\t10\n1\t11\n",
    "sup_ent_ids": "2\t12\n",
}
CONTEA = {
    "triples_1": "0\t0\t1\n1\t0\t2\n",
    "triples_2": "0\t1\t1\n1\t1\t2\n",
    "ref_ent_ids": "0\t1\n1\t2\n2\t0\n5\t6\n",
    "train_links": "1\t2\n",
    "valid_links": "2\t0\n",
    "test_links": "0\t1\n5\t6\n",
}
OPENEA = {
    "rel_triples_1": "b\tlikes\ta\na\tknows\tc\n",
    "rel_triples_2": "B\tmag\tA\nA\tkennt\tC\n",
    "attr_triples_1": "a\tage\t5 \x85 years\n",
    "ent_links": "a\tA\nb\tB\nc\tC\nd\tD\n",
    "721_5fold/1/train_links": "a\tA\n",
    "721_5fold/1/valid_links": "b\tB\n",
    "721_5fold/1/test_links": "c\tC\nd\tD\n",
    "721_5fold/2/train_links": "d\tD\n",
    "721_5fold/2/valid_links": "a\tA\n",
    "721_5fold/2/test_links": "b\tB\nc\tC\n",
}


def write(folder: Path, files: dict[str, str], **changes: str | None) -> Path:
    """Write a folder of files; `changes` replaces some of them, None leaves one out."""
    for name, content in {**files, **changes}.items():
        if content is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode())
    return folder


def original(pair: Pair, part: Any) -> set[tuple[int, int]]:
    """Links in the ids of the files."""
    assert pair.ids1 is not None and pair.ids2 is not None
    part = reveal(part)
    return set(zip(pair.ids1[part[:, 0]].tolist(), pair.ids2[part[:, 1]].tolist(), strict=True))


def named(pair: Pair, part: Any) -> set[tuple[str, str]]:
    """Links by the names of their entities."""
    return {(pair.kg1.entity_label(source), pair.kg2.entity_label(target)) for source, target in reveal(part).tolist()}


def facts(pair: Pair) -> set[tuple[str, str, str]]:
    """The triples of the first graph, by names."""
    kg = pair.kg1
    return {(kg.entity_label(h), kg.relation_label(r), kg.entity_label(t)) for h, r, t in kg.triples.tolist()}


# --- formats ---


@pytest.mark.parametrize("permutation_seed", [None, 0, 1])
def test_a_dbp15k_folder_keeps_its_facts_names_and_links_under_any_permutation(tmp_path, permutation_seed):
    pair = load_pair(write(tmp_path, DBP15K), 0.4, permutation_seed=permutation_seed)
    assert facts(pair) == {("zero", "seven", "one"), ("one", "five", "two"), ("two", "seven", "three")}
    assert named(pair, pair.links) == {("zero", "Zehn"), ("one", "Elf"), ("two", "Zwölf")}
    assert original(pair, pair.links) == {(0, 10), (1, 11), (2, 12)}
    assert pair.name == tmp_path.name


def test_an_entity_without_triples_is_kept(tmp_path):
    pair = load_pair(write(tmp_path, DBP15K))
    assert pair.kg1.num_entities == 5
    assert pair.kg1.degree_stats().isolated == 1


def test_relations_are_numbered_by_increasing_original_id(tmp_path):
    pair = load_pair(write(tmp_path, DBP15K))
    assert list(pair.kg1.relation_names or ()) == ["five", "seven"]
    assert pair.kg2.num_relations == 2
    assert pair.kg2.relation_names is None


def test_without_a_permutation_entities_keep_the_order_of_their_ids(tmp_path):
    pair = load_pair(write(tmp_path, DBP15K), permutation_seed=None)
    assert pair.ids1 is not None and pair.ids2 is not None
    assert pair.ids1.tolist() == [0, 1, 2, 3, 4]
    assert pair.ids2.tolist() == [10, 11, 12]


def test_an_entity_or_relation_without_a_name_is_called_by_its_id(tmp_path):
    pair = load_pair(write(tmp_path, DBP15K, ent_ids_1="0\tzero\n1\t\n2\n3\tthree\n", rel_ids_1="5\tfive\n"))
    assert set(pair.kg1.entity_names or ()) == {"zero", "1", "2", "three"}
    assert list(pair.kg1.relation_names or ()) == ["five", "7"]


def test_a_link_in_both_link_files_counts_once(tmp_path):
    pair = load_pair(write(tmp_path, DBP15K, ref_ent_ids="0\t10\n1\t11\n2\t12\n"), 1.0)
    assert original(pair, pair.links) == {(0, 10), (1, 11), (2, 12)}
    assert len(pair.links) == 3


def test_both_graphs_may_use_the_same_ids_and_links_may_bring_new_entities(tmp_path):
    pair = load_pair(write(tmp_path, CONTEA))
    assert (pair.kg1.num_entities, pair.kg2.num_entities) == (4, 4)
    assert pair.kg1.entity_names is None
    assert original(pair, pair.links) == {(0, 1), (1, 2), (2, 0), (5, 6)}


def test_links_may_stand_only_in_train_valid_and_test_files(tmp_path):
    pair = load_pair(write(tmp_path, CONTEA, ref_ent_ids=None))
    assert original(pair, pair.links) == {(0, 1), (1, 2), (2, 0), (5, 6)}


def test_ids_may_be_negative_or_as_wide_as_64_bits(tmp_path):
    low, high = -(2**63), 2**63 - 1
    files = {
        "triples_1": f"{low}\t0\t{high}\n",
        "triples_2": "1\t0\t2\n",
        "ref_ent_ids": f"{high}\t1\n{low}\t2\n",
    }
    pair = load_pair(write(tmp_path, files))
    assert original(pair, pair.links) == {(high, 1), (low, 2)}


@pytest.mark.parametrize("permutation_seed", [None, 0])
def test_an_openea_folder_is_read_by_names(tmp_path, permutation_seed):
    pair = load_pair(write(tmp_path, OPENEA), permutation_seed=permutation_seed)
    assert facts(pair) == {("b", "likes", "a"), ("a", "knows", "c")}
    assert list(pair.kg1.relation_names or ()) == ["knows", "likes"]
    assert named(pair, pair.links) == {("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")}
    assert pair.ids1 is None and pair.ids2 is None


def test_windows_line_endings_blank_lines_and_a_byte_order_mark_are_fine(tmp_path):
    files = {name: "\ufeff" + text.replace("\n", "\r\n") + "\r\n\r\n" for name, text in DBP15K.items()}
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    windows, unix = load_pair(write(tmp_path / "a", files)), load_pair(write(tmp_path / "b", DBP15K))
    assert windows.kg1 == unix.kg1 and windows.kg2 == unix.kg2
    assert np.array_equal(reveal(windows.links), reveal(unix.links))


def test_names_may_hold_tabs_and_unicode_line_separators(tmp_path):
    names = "0\tze\u2028ro\n1\to\tne\n2\ttwo\x85\n3\tthree\n"
    pair = load_pair(write(tmp_path, DBP15K, ent_ids_1=names))
    assert set(pair.kg1.entity_names or ()) == {"ze\u2028ro", "o\tne", "two\x85", "three"}


# --- splits ---


def many_links(folder: Path, n: int = 100) -> Path:
    lines = "".join(f"{i}\t0\t{(i + 1) % n}\n" for i in range(n))
    links = "".join(f"{i}\t{n - 1 - i}\n" for i in range(n))
    return write(folder, {"triples_1": lines, "triples_2": lines, "ref_ent_ids": links})


def test_the_same_split_seed_gives_the_same_split_under_any_permutation(tmp_path):
    pairs = [load_pair(many_links(tmp_path), 0.2, 3, permutation_seed=seed) for seed in (None, 0, 1)]
    for part in ("train", "test", "links"):
        assert len({frozenset(original(pair, getattr(pair, part))) for pair in pairs}) == 1
    assert pairs[1].kg1 != pairs[2].kg1


def test_another_split_seed_gives_another_split_of_the_same_graphs(tmp_path):
    one, two = (load_pair(many_links(tmp_path), 0.2, seed) for seed in (0, 1))
    assert original(one, one.train) != original(two, two.train)
    assert one.kg1 == two.kg1 and one.kg2 == two.kg2


def test_the_two_graphs_are_permuted_differently(tmp_path):
    pair = load_pair(many_links(tmp_path))
    assert pair.ids1 is not None and pair.ids2 is not None
    assert not np.array_equal(pair.ids1, pair.ids2)


def test_loading_twice_gives_the_same_arrays(tmp_path):
    one, two = (load_pair(many_links(tmp_path), 0.1, 5, permutation_seed=6) for _ in range(2))
    assert one.kg1 == two.kg1 and one.kg2 == two.kg2
    for part in ("links", "train", "test", "ids1", "ids2"):
        assert np.array_equal(reveal(getattr(one, part)), reveal(getattr(two, part)))


@pytest.mark.parametrize(("fraction", "seeds"), [(0.001, 1), (0.29, 29), (0.999, 99), (1, 100)])
def test_a_random_split_is_disjoint_and_complete(tmp_path, fraction, seeds):
    pair = load_pair(many_links(tmp_path), fraction)
    train, test = original(pair, pair.train), original(pair, pair.test)
    assert len(pair.train) == len(train) == seeds
    assert not train & test
    assert train | test == original(pair, pair.links)
    assert pair.valid.shape == (0, 2)
    assert {reveal(array).dtype for array in (pair.links, pair.train, pair.test, pair.valid)} == {np.dtype(np.int64)}


@pytest.mark.parametrize(("fold", "train", "valid"), [(1, ("a", "A"), ("b", "B")), (2, ("d", "D"), ("a", "A"))])
def test_the_published_split_of_openea_is_a_fold(tmp_path, fold, train, valid):
    pair = load_pair(write(tmp_path, OPENEA), None, fold=fold)
    assert named(pair, pair.train) == {train}
    assert named(pair, pair.valid) == {valid}
    assert named(pair, pair.test) == named(pair, pair.links) - {train, valid}


def test_the_published_split_is_in_train_valid_and_test_links_where_present(tmp_path):
    pair = load_pair(write(tmp_path, CONTEA), seed_fraction=None)
    assert original(pair, pair.train) == {(1, 2)}
    assert original(pair, pair.valid) == {(2, 0)}
    assert original(pair, pair.test) == {(0, 1), (5, 6)}


def test_the_published_split_is_otherwise_sup_for_training_and_ref_for_testing(tmp_path):
    pair = load_pair(write(tmp_path, DBP15K), seed_fraction=None)
    assert original(pair, pair.train) == {(2, 12)}
    assert original(pair, pair.test) == {(0, 10), (1, 11)}
    assert pair.valid.shape == (0, 2)


def test_a_training_link_that_the_files_repeat_for_testing_is_not_tested(tmp_path):
    pair = load_pair(write(tmp_path, DBP15K, ref_ent_ids="0\t10\n2\t12\n1\t11\n"), seed_fraction=None)
    assert original(pair, pair.train) == {(2, 12)}
    assert original(pair, pair.test) == {(0, 10), (1, 11)}


# --- the real data ---


def real(name: str, *args: object, **options: object) -> Pair:
    if not (DATA / name).is_dir():
        pytest.skip(f"no {name} in {DATA}; set STEA_DATA to the folder of datasets")
    return load_pair(DATA / name, *args, **options)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "entities", "relations", "triples", "links"),
    [
        ("dbp15k_zh_en", (19_388, 19_572), (1_701, 1_323), (70_414, 95_142), 15_000),
        ("contea_zh_en", (84_381, 132_425), (1_701, 1_323), (229_383, 400_306), 30_112),
        ("debian_bookworm_trixie", (146_179, 186_018), (19, 19), (1_030_457, 1_155_497), 123_181),
    ],
)
def test_the_real_pairs_have_the_published_sizes(name, entities, relations, triples, links):
    pair = real(name)
    graphs = (pair.kg1, pair.kg2)
    assert tuple(kg.num_entities for kg in graphs) == entities
    assert tuple(kg.num_relations for kg in graphs) == relations
    assert tuple(kg.num_triples for kg in graphs) == triples
    assert len(pair.links) == links
    assert len(pair.train) == links // 100
    assert len(pair.train) + len(pair.test) == links


def constant_offset_share(pair: Pair) -> float:
    """The largest share of links whose two ids differ by the same number."""
    links = reveal(pair.links)
    _, counts = np.unique(links[:, 1] - links[:, 0], return_counts=True)
    return float(counts.max() / len(links))


@pytest.mark.slow
def test_the_permutation_hides_the_alignment_that_the_ids_of_dbp15k_leak():
    assert constant_offset_share(real("dbp15k_zh_en", permutation_seed=None)) > 0.5
    assert constant_offset_share(real("dbp15k_zh_en")) < 0.01


@pytest.mark.slow
def test_dbp15k_keeps_its_names():
    pair = real("dbp15k_zh_en")
    assert ("http://zh.dbpedia.org/resource/金大中", "http://dbpedia.org/resource/Kim_Dae-jung") in named(
        pair, pair.links
    )
    assert (pair.kg1.relation_names or [""])[0] == "http://zh.dbpedia.org/property/derivatives"


@pytest.mark.slow
def test_contea_has_a_published_split_and_relation_names_only():
    pair = real("contea_zh_en", None)
    assert (len(pair.train), len(pair.valid), len(pair.test)) == (3_623, 1_811, 24_678)
    assert pair.kg1.entity_names is None
    assert pair.kg1.relation_names is not None
