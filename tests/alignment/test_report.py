"""The report: one page that needs nothing else, and works in a browser."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import replace

import pytest

import stea_fast as sf

EVIL = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The path of a report on a pair whose first entity has a hostile name."""
    pair = sf.synthetic_pair(200, seed=0, seed_fraction=0.3)
    names = [f"http://example.org/entity/{i}" for i in range(pair.kg1.num_entities)]
    names[:2] = [EVIL, "http://example.org/entity/金大中"]
    kg1 = sf.KG(pair.kg1.triples, len(names), entity_names=names)
    path = tmp_path_factory.mktemp("report") / "report.html"
    sf.align(replace(pair, kg1=kg1), rounds=1, calibration="crossfit").write_report(path)
    return path


def test_the_page_needs_no_other_file_and_no_network(page):
    text = page.read_text(encoding="utf-8")
    assert not re.findall(r"(?:src|href)=[\"'](?!data:)", text)
    assert "default-src 'none'" in text
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest", text)


def test_names_are_text_and_never_markup(page):
    text = page.read_text(encoding="utf-8")
    assert EVIL not in text
    assert text.count("<script>") == 1


def test_all_sections_are_there(page):
    text = page.read_text(encoding="utf-8")
    titles = re.findall(r"<h2>(.*?)</h2>", text)
    assert titles == ["Summary", "Quality", "Rounds", "Calibration", "Degrees and coverage", "Relations", "Links",
                      "To run it again"]  # fmt: skip
    assert "Hit@1" in text and "calibration error" in text and "preset" in text and sf.__version__ in text


def test_without_test_links_nothing_is_said_of_quality(tmp_path):
    pair = sf.synthetic_pair(100, seed=0, seed_fraction=0.3)
    mine = sf.make_pair(pair.kg1, pair.kg2, pair.train, name="mine")
    sf.align(mine, rounds=1, calibration="none").write_report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h2>Quality</h2>" not in text and "Hit@1" not in text
    assert "not calibrated" in text


# --- in a real browser ---


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
    yield session
    session.quit()


@pytest.fixture
def opened(browser, page):
    browser.get(page.as_uri())
    return browser


def visible(browser) -> list[str]:
    script = (
        "return Array.from(document.querySelectorAll('details.link')).filter(e => e.offsetParent).map(e => e.innerText)"
    )
    return browser.execute_script(script)


def type_in_search(browser, text: str) -> None:
    box = browser.find_element("id", "search")
    box.clear()
    box.send_keys(text)


@pytest.mark.slow
def test_the_page_renders_without_a_console_error(opened):
    assert "Alignment of synthetic-200" in opened.title
    assert opened.get_log("browser") == []
    heights = opened.execute_script("return Array.from(document.querySelectorAll('svg'), e => e.clientHeight)")
    assert len(heights) >= 5 and min(heights) > 50


@pytest.mark.slow
def test_the_search_finds_names_and_facts(opened):
    assert 0 < len(visible(opened)) <= 60
    name = visible(opened)[5].split(" ≡ ")[0].split("\n")[0].strip()
    type_in_search(opened, f"entity/{name}" if name.isdigit() else name)
    found = visible(opened)
    assert found and len(found) < 60 and any(name in text for text in found)
    assert opened.find_element("id", "count").text.split()[-1] == str(len(found))
    type_in_search(opened, "surely nothing has this name")
    assert visible(opened) == []


@pytest.mark.slow
def test_the_status_narrows_the_list_and_a_link_opens_to_its_facts(opened):
    type_in_search(opened, "")
    opened.execute_script(
        "const s = document.getElementById('status'); s.value = 'link'; s.dispatchEvent(new Event('change'))"
    )
    assert visible(opened) and all("≡" in text for text in visible(opened))
    first = opened.find_element("css selector", "details.link:not([hidden]) summary")
    first.click()
    assert "≈" in visible(opened)[0]


@pytest.mark.slow
def test_the_page_fits_a_phone(opened):
    metrics = {"width": 375, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        assert opened.execute_script("return document.documentElement.scrollWidth") <= 375
        size = opened.execute_script("return parseFloat(getComputedStyle(document.body).fontSize)")
        assert size >= 16
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
