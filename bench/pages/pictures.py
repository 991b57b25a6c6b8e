"""Pictures of a report: on a desk with an entity opened, and on a phone. Needs chromium, chromium-driver and selenium.

python -m bench.pages.pictures report.html docs/figures
"""

from __future__ import annotations

import base64
import shutil
import sys
from pathlib import Path
from typing import Any

ENTITY = "Alphonse_II"  # looked up in the pictures
DESK = {"width": 900, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
PHONE = {"width": 360, "height": 1000, "deviceScaleFactor": 1, "mobile": True}
LOOK_UP = """
const search = document.getElementById("search");
search.value = arguments[0];
search.dispatchEvent(new Event("input"));
document.querySelector("details.entity").open = true;
"""


def take_pictures(report: Path, folder: Path) -> None:
    """Write `report_summary.png`, `report_entity.png` and `report_phone.png`."""
    browser = _browser()
    try:
        browser.implicitly_wait(60)  # until the page has unpacked its entities
        browser.get(report.resolve().as_uri())
        browser.find_element("css selector", "details.entity")
        folder.mkdir(parents=True, exist_ok=True)
        for name, screen, first_section in (
            ("report_summary", DESK, None), ("report_entity", DESK, "entities"), ("report_phone", PHONE, "entities"),
        ):  # fmt: skip
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
            if first_section is not None:
                browser.execute_script(LOOK_UP, ENTITY)
                browser.find_element("css selector", "details.entity p + p")
            (folder / f"{name}.png").write_bytes(_picture(browser, screen, first_section))
    finally:
        browser.quit()


def _picture(browser: Any, screen: dict[str, Any], section: str | None) -> bytes:
    """What the screen shows of a section, and not what follows it; for None the top of the page."""
    top, height = 0, screen["height"]
    if section is not None:
        script = "const place = document.getElementById(arguments[0]); return [place.offsetTop, place.offsetHeight]"
        top, whole = browser.execute_script(script, section)
        height = min(height, whole)
    clip = {"x": 0, "y": top, "width": screen["width"], "height": height, "scale": 1}
    taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    return base64.b64decode(taken["data"])


def _browser() -> Any:
    from selenium import webdriver

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        sys.exit("pictures need chromium and chromium-driver; --no-pictures leaves them as they are")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


if __name__ == "__main__":
    take_pictures(Path(sys.argv[1]), Path(sys.argv[2]))
