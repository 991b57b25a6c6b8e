"""The section where any entity can be looked up. `tables.js` and `page.js` fill it from the tables of `lookup`."""

from __future__ import annotations

from html import escape

from stea_fast.alignment.report.content import ReportContent
from stea_fast.alignment.report.elements import section

_SHOWN = {
    "": "all entities",
    "link": "links",
    "uncertain": "uncertain",
    "no_counterpart": "without counterpart",
    "seed": "seeds",
    "unlinked": "of the second graph, not linked",
}
_ORDERS = {"name": "by name", "surest": "surest first", "least_sure": "least sure first", "random": "at random"}


def entities_section(report: ReportContent, most_facts: int, most_rejected: int) -> str:
    """Search, filter and order; rows and pages are empty until the script has unpacked the tables."""
    kg1, kg2 = report.pair.kg1, report.pair.kg2
    content = (
        '<div class="search">'
        '<input type="search" id="search" placeholder="Search names" aria-label="Search names" disabled>'
        f"{_choice('status', 'Which entities', _SHOWN)}{_choice('order', 'In which order', _ORDERS)}</div>\n"
        '<p class="note" id="count" role="status">'
        "<noscript>The entities are compressed in this page, and JavaScript is needed to unpack them.</noscript></p>\n"
        '<div id="rows"></div>\n'
        '<div class="pages"><button type="button" id="back" hidden>Back</button>'
        '<button type="button" id="on" hidden>On</button></div>'
    )
    note = (
        f"All {kg1.num_entities:,} entities of the first graph, and those of the {kg2.num_entities:,} of the second "
        f"that no link reaches. Open one to see up to {most_facts} facts behind it and {most_rejected} other "
        "candidates, with the reason why they were rejected; their scores are not calibrated."
    )
    return section("Entities", content, note=note, name="entities")


def _choice(name: str, label: str, options: dict[str, str]) -> str:
    listed = "".join(f'<option value="{value}">{escape(text)}</option>' for value, text in options.items())
    return f'<select id="{name}" aria-label="{label}" disabled>{listed}</select>'
