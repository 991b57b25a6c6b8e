"""The report in a real browser."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

import pytest
from report_pages import EVIL, RIGHT_TO_LEFT

import stea_fast as sf
from stea_fast.alignment.link_table import STATUSES

pytestmark = pytest.mark.slow
PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
LONG = "http://example.org/" + 60 * "very_long_name_" + "end"


@pytest.fixture(scope="module")
def alignment():
    """Of a pair with names that must do no harm: hostile, from right to left, and long."""
    pair = sf.synthetic_pair(200, seed=0, seed_fraction=0.3)
    names = [f"http://example.org/entity/{i}" for i in range(pair.kg1.num_entities)]
    names[:4] = [EVIL, "http://example.org/entity/金大中", RIGHT_TO_LEFT, LONG]
    relations = [f"http://example.org/{40 * 'relation'}{i}" for i in range(pair.kg1.num_relations)]
    kg1 = sf.KG(pair.kg1.triples, len(names), entity_names=names, relation_names=relations)
    return sf.align(replace(pair, kg1=kg1), rounds=1, calibration="holdout", min_prob=0.9)


@pytest.fixture(scope="module")
def page(alignment, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    alignment.write_report(path)
    return path


def required(reason: str) -> None:
    """Skip, unless the checks insist on a browser (STEA_REQUIRE_BROWSER=1)."""
    if os.environ.get("STEA_REQUIRE_BROWSER") == "1":
        pytest.fail(f"{reason}, but STEA_REQUIRE_BROWSER=1")
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser():
    try:
        from selenium import webdriver
    except ModuleNotFoundError:
        required("selenium is not installed")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        required("chromium and chromium-driver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    session = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    session.implicitly_wait(20)  # for what the page unpacks
    yield session
    session.quit()


@pytest.fixture
def opened(browser, page):
    browser.get(page.as_uri())
    browser.find_element("css selector", "details.entity")
    return browser


def rows(browser) -> list[str]:
    return browser.execute_script("return Array.from(document.querySelectorAll('details.entity'), e => e.innerText)")


def count(browser) -> str:
    return browser.find_element("id", "count").text


def look_up(browser, text: str = "", status: str = "", order: str = "name") -> None:
    script = (
        "for (const [id, value] of Object.entries(arguments[0])) {"
        "const place = document.getElementById(id); place.value = value; place.dispatchEvent(new Event('input')); }"
    )
    browser.execute_script(script, {"search": text, "status": status, "order": order})


def open_first(browser) -> str:
    """Open the first row, wait until what it holds is unpacked, and give its text."""
    browser.find_element("css selector", "details.entity summary").click()
    browser.find_element("css selector", "details.entity p + p")
    return rows(browser)[0]


def test_the_page_renders_without_a_console_error_and_no_name_runs(opened):
    assert "Alignment of synthetic-200" in opened.title
    look_up(opened, "onerror")
    assert EVIL[:60] in open_first(opened)
    assert opened.get_log("browser") == []
    assert opened.execute_script("return document.querySelectorAll('#rows img, #rows script').length") == 0
    heights = opened.execute_script("return Array.from(document.querySelectorAll('svg'), e => e.clientHeight)")
    assert len(heights) >= 5 and min(heights) > 50


def test_every_entity_is_found_by_its_name(opened, alignment):
    found = set()
    for row in alignment.links.rows():
        if row.source.startswith("http://example.org/entity/"):
            look_up(opened, row.source)
            found |= {row.source for text in rows(opened) if row.source.rsplit("/")[-1] in text}
    assert len(found) == 198
    look_up(opened, "surely nothing has this name")
    assert rows(opened) == [] and count(opened) == "0 found"


def test_pages_turn_through_all_entities(opened, alignment):
    seen = []
    look_up(opened)
    while True:
        seen += rows(opened)
        if not opened.find_element("id", "on").is_displayed():
            break
        assert "of" in count(opened)
        opened.find_element("id", "on").click()
    linked = {row.target for row in alignment.links.rows() if row.status in ("seed", "link")}
    assert len(seen) == 200 + alignment.pair.kg2.num_entities - len(linked)
    opened.find_element("id", "back").click()
    assert len(rows(opened)) == 50


@pytest.mark.parametrize("status", STATUSES)
def test_the_status_narrows_the_list(opened, alignment, status):
    look_up(opened, status=status)
    total = alignment.links.count(status)
    assert total and count(opened).replace(",", "").split()[-2] == str(total)


def test_orders_by_probability(opened, alignment):
    probs = {row.source.rsplit("/")[-1]: row.probability for row in alignment.links.rows() if row.status == "link"}
    for order, sign in (("surest", -1), ("least_sure", 1)):
        look_up(opened, status="link", order=order)
        shown = [probs[text.split(" ≡ ")[0]] for text in rows(opened) if text.split(" ≡ ")[0].isdigit()]
        assert len(shown) > 20
        assert [round(prob, 6) for prob in shown] == sorted((round(prob, 6) for prob in shown), key=lambda p: sign * p)


def test_a_link_opens_to_its_facts_and_other_candidates_with_reasons(opened):
    look_up(opened, status="link", order="surest")
    text = open_first(opened)
    assert "Linked: right with probability" in text and "Facts that speak for it" in text and "≈" in text
    look_up(opened, status="uncertain")
    text = open_first(opened)
    assert "less than the 0.9 that a link needs" in text
    assert "Other candidates" in text and ("less likely" in text or "only one direction lists it" in text)
    look_up(opened, status="no_counterpart")
    assert "below which a candidate is not named" in open_first(opened)
    look_up(opened, status="seed")
    assert "A seed: it was given." in open_first(opened)
    look_up(opened, status="unlinked")
    assert "Its best is" in open_first(opened) or "likely candidate" in rows(opened)[0]


def test_names_are_short_with_the_iri_behind_them_and_isolated(opened):
    look_up(opened, "金大中")
    name = opened.find_element("css selector", "details.entity bdi")
    assert name.text == "金大中" and name.get_attribute("title") == "http://example.org/entity/金大中"
    look_up(opened, RIGHT_TO_LEFT)
    style = opened.execute_script("return getComputedStyle(document.querySelector('details.entity bdi')).unicodeBidi")
    assert style == "isolate"


def test_the_page_fits_a_phone(opened):
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    try:
        look_up(opened, "example.org/very_long")
        assert "very_long_name" in open_first(opened)
        beyond = opened.execute_script(
            "return Array.from(document.querySelectorAll('body *'))"
            ".filter(e => e.getBoundingClientRect().right > 360.5 || e.scrollWidth > e.clientWidth + 1)"
            ".filter(e => e.clientWidth)"  # what is inline has none
            ".filter(e => !e.closest('.stacked thead, svg'))"
            ".map(e => e.tagName + ' ' + e.textContent.slice(0, 60))"
        )
        assert beyond == []
        assert opened.execute_script("return document.documentElement.scrollWidth") <= 360
        assert opened.execute_script("return parseFloat(getComputedStyle(document.body).fontSize)") >= 16
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_browser_that_cannot_unpack_says_so(browser, page):
    lacking = {"source": "delete window.DecompressionStream"}
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", lacking)
    try:
        browser.get(page.as_uri())
        assert "lacks DecompressionStream" in count(browser) and "file of links" in count(browser)
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": added["identifier"]})


@pytest.mark.parametrize(("part", "where"), [("table", "p[@id='count']"), ("block-0", "details/p")])
def test_a_damaged_page_says_so(browser, page, tmp_path, part, where):
    text = page.read_text(encoding="utf-8")
    (tmp_path / "damaged.html").write_text(text.replace(f'id="{part}">', f'id="{part}">AAAA'), encoding="utf-8")
    browser.get((tmp_path / "damaged.html").as_uri())
    if part != "table":
        browser.find_element("css selector", "details.entity summary").click()
    browser.find_element("xpath", f"//{where}[contains(., 'cannot be unpacked')]")
