"""What a user is told when a dataset folder cannot be loaded: the file, the line and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from stea_fast.data.dataset_folders import load_pair

INTEGERS = {
    "triples_1": "0\t7\t1\n1\t5\t2\n",
    "triples_2": "10\t9\t11\n11\t9\t12\n",
    "ent_ids_1": "0\tzero\n1\tone\n2\ttwo\n",
    "ent_ids_2": "10\tZehn\n11\tElf\n12\tZwölf\n",
    "ref_ent_ids": "0\t10\n1\t11\n",
    "sup_ent_ids": "2\t12\n",
}
NAMES = {
    "rel_triples_1": "b\tlikes\ta\n",
    "rel_triples_2": "B\tmag\tA\n",
    "ent_links": "a\tA\nb\tB\n",
    "721_5fold/1/train_links": "a\tA\n",
    "721_5fold/1/valid_links": "",
    "721_5fold/1/test_links": "b\tB\n",
}


def write(folder: Path, files: dict[str, str], **changes: str | bytes | None) -> Path:
    """Write a folder of files; `changes` replaces some of them, None leaves one out."""
    for name, content in {**files, **changes}.items():
        if content is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_an_unknown_folder_is_refused_with_the_files_that_were_expected(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ValueError, match=r"expected triples_1.*rel_triples_1.*ent_links.*found notes\.txt"):
        load_pair(tmp_path)


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere is not a folder"):
        load_pair(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("files", "missing"),
    [(INTEGERS, "triples_1"), (INTEGERS, "triples_2"), (NAMES, "rel_triples_2"), (NAMES, "ent_links")],
)
def test_a_missing_file_is_named(tmp_path, files, missing):
    with pytest.raises(FileNotFoundError, match=missing):
        load_pair(write(tmp_path, files, **{missing: None}))


def test_a_missing_fold_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="train_links"):
        load_pair(write(tmp_path, NAMES), None, fold=3)


def test_a_folder_without_links_says_which_files_were_expected(tmp_path):
    with pytest.raises(FileNotFoundError, match="no links: expected ref_ent_ids or sup_ent_ids"):
        load_pair(write(tmp_path, INTEGERS, ref_ent_ids=None, sup_ent_ids=None))


@pytest.mark.parametrize(
    "line",
    [
        "1\t2",
        "1\t2\t3\t4",
        "1\ttwo\t3",
        "1 2 3",
        "1\t2\t3.5",
        "1\t\t3",
        "1\t2\t99999999999999999999",
        " ",
        "1\t2\t\U0010ffff",  # a digit to NumPy's reader, which looks it up in a table of 256 characters
    ],
)
def test_a_malformed_triple_is_shown_with_its_file_and_line(tmp_path, line):
    with pytest.raises(ValueError) as error:
        load_pair(write(tmp_path, INTEGERS, triples_1=f"0\t7\t1\n\n{line}\n1\t7\t2\n"))
    assert str(error.value) == f"{tmp_path / 'triples_1'}:3: expected 3 tab-separated integers, got {line!r}"


def test_a_file_with_the_wrong_number_of_columns_throughout_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"ref_ent_ids:1: expected 2 tab-separated integers.*'0\\t10\\t1'"):
        load_pair(write(tmp_path, INTEGERS, ref_ent_ids="0\t10\t1\n1\t11\t1\n"))


@pytest.mark.parametrize("line", ["a\tlikes", "a\tlikes\tb\tc", "a\t\tb"])
def test_a_malformed_triple_of_names_is_shown_with_its_file_and_line(tmp_path, line):
    with pytest.raises(ValueError) as error:
        load_pair(write(tmp_path, NAMES, rel_triples_1=f"a\tlikes\tb\n{line}\n"))
    assert str(error.value) == f"{tmp_path / 'rel_triples_1'}:2: expected 3 tab-separated names, got {line!r}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0\tzero\none\tone\n", r"ent_ids_1:2: expected an integer id, a tab and a name, got 'one\\tone'"),
        ("0\tzero\n99999999999999999999\tone\n", "ent_ids_1:2: expected an integer id"),
        ("0\tzero\n1\tone\n0\tnull\n", "ent_ids_1:3: id 0 is listed twice"),
    ],
)
def test_a_malformed_list_of_names_is_shown_with_its_file_and_line(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        load_pair(write(tmp_path, INTEGERS, ent_ids_1=content))


@pytest.mark.parametrize(
    ("files", "name", "content"),
    [
        (INTEGERS, "ent_ids_1", b"0\tzero\n1\t\xff\n"),
        (INTEGERS, "triples_1", b"0\t7\t1\n\xff\t7\t1\n"),
        (NAMES, "ent_links", b"a\tA\nb\t\xff\n"),
    ],
)
def test_a_file_that_is_not_utf8_is_named_with_the_line(tmp_path, files, name, content):
    with pytest.raises(ValueError, match=f"{name}:2: not UTF-8"):
        load_pair(write(tmp_path, files, **{name: content}))


@pytest.mark.parametrize(
    ("files", "name", "content", "message"),
    [
        (
            INTEGERS,
            "ref_ent_ids",
            "0\t10\n\n0\t11\n",
            r"ref_ent_ids:3: source entity 0 has more than one link",
        ),
        (
            INTEGERS,
            "ref_ent_ids",
            "0\t10\n1\t12\n",
            r"ref_ent_ids:2: target entity 12 has more than one link",
        ),
        (NAMES, "ent_links", "a\tA\nb\tA\n", r"ent_links:2: target entity A has more than one link"),
    ],
)
def test_links_that_are_not_one_to_one_are_refused_with_the_entity(tmp_path, files, name, content, message):
    with pytest.raises(ValueError, match=message):
        load_pair(write(tmp_path, files, **{name: content}))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("triples_1", "0\t7\t1\n0\t7\t8\n", "triples_1:2: entity 8 is missing from ent_ids_1"),
        ("ref_ent_ids", "0\t10\n1\t99\n", "ref_ent_ids:2: entity 99 is missing from ent_ids_2"),
    ],
)
def test_an_entity_missing_from_the_list_of_entities_is_refused(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=message):
        load_pair(write(tmp_path, INTEGERS, **{name: content}))


def test_empty_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="triples_1 holds no triples"):
        load_pair(write(tmp_path, INTEGERS, triples_1=""))
    with pytest.raises(ValueError, match="sup_ent_ids holds no links"):
        load_pair(write(tmp_path, INTEGERS, sup_ent_ids="", ref_ent_ids="\n"))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seed_fraction": -0.1}, ValueError, "seed_fraction must be a finite number between 0.0 and 1.0"),
        ({"seed_fraction": 1.5}, ValueError, "seed_fraction must be a finite number between 0.0 and 1.0"),
        ({"seed_fraction": "all"}, TypeError, "seed_fraction must be a number"),
        ({"split_seed": -1}, ValueError, "split_seed must be between"),
        ({"permutation_seed": 0.5}, TypeError, "permutation_seed must be an integer"),
        ({"fold": 0}, ValueError, "fold must be between 1"),
    ],
)
def test_a_wrong_option_is_named(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        load_pair(write(tmp_path, INTEGERS), **options)


@pytest.mark.parametrize(
    "files",
    [
        {name: text for name, text in INTEGERS.items() if name != "sup_ent_ids"},
        {name: text for name, text in NAMES.items() if "fold" not in name},
    ],
    ids=["integers", "names"],
)
def test_a_folder_without_a_published_split_says_so(tmp_path, files):
    with pytest.raises(ValueError, match="has no published split; give seed_fraction"):
        load_pair(write(tmp_path, files), seed_fraction=None)


def test_a_published_link_that_is_not_among_the_links_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"train_links:2: the link b - A is not in ent_links"):
        load_pair(write(tmp_path, NAMES, **{"721_5fold/1/train_links": "a\tA\nb\tA\n"}), seed_fraction=None)
