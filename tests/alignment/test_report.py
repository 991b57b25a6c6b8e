"""The report: one page that needs nothing else and holds every entity."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from report_pages import EVIL, RIGHT_TO_LEFT, names_of, unpacked

import stea_fast as sf
from stea_fast._util.statistics import wilson_interval
from stea_fast.alignment.calibration import THIN_BASIS
from stea_fast.alignment.link_table import STATUSES
from stea_fast.alignment.report import lookup
from stea_fast.alignment.report.names import name_element, shortened, split_name
from stea_fast.alignment.report.rejected import REASONS, rejected_candidates

LIMIT = 20_000_000


@pytest.fixture(scope="module")
def alignment():
    """Of a pair of which two entities have names that must do no harm."""
    pair = sf.synthetic_pair(200, seed=0, seed_fraction=0.3)
    names = [f"http://example.org/entity/{i}" for i in range(pair.kg1.num_entities)]
    names[:3] = [EVIL, "http://example.org/entity/金大中", RIGHT_TO_LEFT]
    kg1 = sf.KG(pair.kg1.triples, len(names), entity_names=names)
    return sf.align(replace(pair, kg1=kg1), rounds=1, calibration="holdout", min_prob=0.9)


@pytest.fixture(scope="module")
def page(alignment, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    alignment.write_report(path)
    return path


def test_the_page_needs_no_other_file_and_no_network(page):
    text = page.read_text(encoding="utf-8")
    assert not re.findall(r"(?:src|href)=[\"'](?!data:)", text)
    assert "default-src 'none'" in text
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest", text)


def test_names_are_text_and_never_markup_and_only_the_pages_own_script_may_run(page):
    text = page.read_text(encoding="utf-8")
    assert EVIL not in text
    assert text.count("<script>") == 1
    assert "script-src 'sha256-" in text and "unsafe-inline" not in text


def test_all_sections_are_there(page):
    text = page.read_text(encoding="utf-8")
    titles = re.findall(r"<h2>(.*?)</h2>", text)
    assert titles == ["Summary", "Quality", "Rounds", "Calibration", "Degrees and coverage", "Relations", "Entities",
                      "To run it again"]  # fmt: skip
    assert "Hit@1" in text and "preset" in text and sf.__version__ in text


def test_the_page_says_how_probabilities_were_calibrated_and_what_precision_to_expect(page, alignment):
    text = page.read_text(encoding="utf-8")
    assert f"Probabilities: {alignment.calibrator.note}." in text
    mean, low, high = alignment.expected_precision
    assert f"<b>{mean:.3f}</b><span>precision to expect, {low:.3f} to {high:.3f}</span>" in text


def test_the_reliability_curve_has_counts_and_intervals(page, alignment):
    curve = alignment.calibrator.after
    section = page.read_text(encoding="utf-8").split("<h2>Calibration</h2>")[1].split("</section>")[0]
    rows = [re.findall(r"<td.*?>(.*?)</td>", row) for row in re.findall(r"<tr>(<td.*?)</tr>", section)]
    filled = np.flatnonzero(curve.counts)
    assert [int(row[2].replace(",", "")) for row in rows] == curve.counts[filled].tolist()
    low, high = wilson_interval(curve.accuracy, curve.counts)
    assert [row[4] for row in rows] == [f"{low[i]:.3f} to {high[i]:.3f}" for i in filled]
    assert section.count('class="interval"') == len(filled) + np.count_nonzero(alignment.calibrator.before.counts)


def test_wilsons_interval_has_the_published_values():
    low, high = wilson_interval(np.array([0.0, 0.8, 1.0, np.nan]), np.array([10, 10, 10, 0]))
    assert low[:3].round(4).tolist() == [0.0, 0.4902, 0.7225]
    assert high[:3].round(4).tolist() == [0.2775, 0.9433, 1.0]
    assert np.isnan(low[3]) and np.isnan(high[3])


@pytest.mark.parametrize(("num_links", "warned"), [(0, True), (THIN_BASIS - 1, True), (THIN_BASIS, False)])
def test_probabilities_that_rest_on_few_seeds_are_warned_of(alignment, tmp_path, num_links, warned):
    calibrator = replace(alignment.calibrator, num_links=num_links)
    replace(alignment, calibrator=calibrator).write_report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (f'<p class="warning">The probabilities rest on {num_links} held-out seeds' in text) == warned


def test_without_test_links_nothing_is_said_of_quality(alignment, tmp_path):
    pair = alignment.pair
    mine = sf.make_pair(pair.kg1, pair.kg2, pair.train, name="mine")
    replace(alignment, pair=mine, result=replace(alignment.result, history=())).write_report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h2>Quality</h2>" not in text and "Hit@1" not in text


# --- every entity ---


def test_every_entity_of_both_graphs_is_in_the_page_with_its_decision(page, alignment):
    table = unpacked(page)
    links, (sources, targets) = alignment.links, map(names_of, table["entities"])
    assert sources == sorted(links.label1(e) for e in range(200))
    assert targets == sorted(links.label2(e) for e in range(alignment.pair.kg2.num_entities))
    found = {
        source: (STATUSES[int(status)], targets[target] if target >= 0 else None)
        for source, status, target in zip(sources, table["status"], table["target"], strict=True)
    }
    assert {links.count(status) > 0 for status in STATUSES} == {True}  # else this shows little
    for row in links.rows():
        status, target = found[row.source]
        assert status == row.status
        assert target == row.target or (row.target is None and status == "no_counterpart")


def test_the_facts_of_a_source_are_those_that_explain_it(page, alignment):
    table, links = unpacked(page), alignment.links
    (sources, targets), block = map(names_of, table["entities"]), unpacked(page, "block-0")["facts"]
    begins = np.concatenate([[0], np.cumsum(block["count"])])
    for e in np.flatnonzero(links.considered >= 0).tolist():
        place = sources.index(links.label1(e))
        expected = alignment.result.refinement.explain(e, int(links.considered[e]))[:5]
        rows = range(begins[place], begins[place + 1])
        neighbors = [sources[block["neighbor"][i]] for i in rows]
        assert neighbors == [links.label1(fact.neighbor) for fact in expected]
        packed = [(block["neighbor"][i], block["neighbor2"][i]) for i in rows]
        neighbors2 = [targets[other - 1 if other else table["target"][n]] for n, other in packed]
        assert neighbors2 == [links.label2(fact.neighbor2) for fact in expected]
        assert [block["relation"][i] for i in rows] == [fact.relation for fact in expected]


def test_a_rejected_candidate_has_the_reason(alignment):
    indices = np.array([[0, 1, 2, 3, 4], [1, 0, -1, -1, -1], [3, 0, 2, -1, -1]])
    scores = np.array([[0.9, 0.5, 0.3, 0.2, 0.0], [0.9, 0.1, 0.0, 0.0, 0.0], [0.8, 0.7, 0.1, 0.0, 0.0]])
    best = np.array([[0], [1], [0], [2], [1]])
    joint = sf.Candidates(sf.Ranking(indices, scores), sf.Ranking(best, np.ones((5, 1))))
    status = np.array([STATUSES.index(name) for name in ("link", "seed", "link")])
    links = replace(alignment.links, status=status, considered=np.array([0, 1, 3]))

    def reasons(**options):
        found = rejected_candidates(links, joint, **options)
        named = [(target, REASONS[reason]) for target, reason in zip(found.target, found.reason, strict=True)]
        return [named[begin:end] for begin, end in zip(found.indptr[:-1], found.indptr[1:], strict=True)]

    assert reasons(one_to_one=False, most=9) == [
        [(1, "seed"), (2, "less_likely"), (3, "prefers_another"), (4, "one_sided")],
        [],
        [(0, "prefers_another"), (2, "prefers_another")],
    ]
    assert reasons(one_to_one=True, most=3)[0] == [(1, "seed"), (2, "less_likely"), (3, "taken")]


def test_a_report_of_large_labels_stays_small(alignment, tmp_path):
    pair = alignment.pair
    letters = np.random.default_rng(0).integers(97, 123, (200, 200_000), dtype=np.uint8)
    texts = [row.tobytes().decode() for row in letters]
    names = [f"http://{text}/{text}" if i % 2 else text for i, text in enumerate(texts)]
    kg1 = sf.KG(pair.kg1.triples, 200, entity_names=names, relation_names=names[: pair.kg1.num_relations])
    links = replace(alignment.links, label1=kg1.entity_label)
    path = tmp_path / "report.html"
    replace(alignment, pair=replace(pair, kg1=kg1, name=names[0]), links=links).write_report(path)
    assert path.stat().st_size < LIMIT / 50
    shown = names_of(unpacked(path)["entities"][0])
    assert len(shown) == 200 and max(map(len, shown)) == 200 and all("…" in name for name in shown)


def test_a_page_that_would_be_too_large_has_shorter_names_and_fewer_facts(alignment, tmp_path, monkeypatch):
    monkeypatch.setattr(lookup, "MOST_CHARACTERS", 1_000)
    monkeypatch.setattr(lookup, "LETTERS", (200, 24))
    path = tmp_path / "report.html"
    alignment.write_report(path)
    sources = names_of(unpacked(path)["entities"][0])
    assert len(sources) == 200 and max(map(len, sources)) <= 24  # every entity is there
    assert "up to 0 facts" in path.read_text(encoding="utf-8")
    assert sum(unpacked(path, "block-0")["facts"]["count"]) == 0


def test_where_no_relation_has_a_counterpart_report_and_relations_are_written(alignment, tmp_path):
    none = sf.RelationAlignment.uniform(alignment.pair.kg1, alignment.pair.kg2)
    result = replace(alignment.result, refinement=replace(alignment.result.refinement, _alignment=none))
    without = replace(alignment, result=result)
    without.write_report(tmp_path / "report.html")
    without.write_relations(tmp_path / "relations.tsv")
    assert "<h2>Relations</h2>" not in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len((tmp_path / "relations.tsv").read_text(encoding="utf-8").splitlines()) == 1


# --- names ---


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("http://fr.dbpedia.org/resource/Paris", ("http://fr.dbpedia.org/resource/", "Paris")),
        ("http://www.w3.org/2002/07/owl#Thing", ("http://www.w3.org/2002/07/owl#", "Thing")),
        ("http://a.org/b/c/", ("http://a.org/b/", "c/")),
        ("http://a.org", ("", "http://a.org")),
        ("http://a.org/", ("", "http://a.org/")),
        ("AC/DC", ("", "AC/DC")),
        ("", ("", "")),
    ],
)
def test_an_iri_is_shown_by_its_local_part(name, parts):
    assert split_name(name) == parts


def test_a_name_is_isolated_and_whole_behind_its_local_part():
    shown = name_element("http://a.org/<b>")
    assert shown == '<bdi title="http://a.org/&lt;b&gt;">&lt;b&gt;</bdi>'


def test_long_names_keep_their_beginning_and_their_end():
    assert shortened("a" * 100 + "b" * 100, 9) == "aaaaa…bbb"
    assert shortened("short", 9) == "short"
