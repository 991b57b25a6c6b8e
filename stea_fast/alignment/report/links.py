"""The searchable sample of links, each with the facts behind it."""

from __future__ import annotations

from html import escape

import numpy as np

from stea_fast.alignment.link_table import STATUSES
from stea_fast.alignment.report.content import ReportContent

MOST_LINKS = 300
MOST_FACTS = 5  # behind each of them


def sample_section(report: ReportContent) -> str:
    """A random sample of links and of entities without counterpart; everything is in the file of links."""
    links = report.links
    candidates = np.flatnonzero(links.status != STATUSES.index("seed"))
    chosen = candidates
    if len(candidates) > MOST_LINKS:
        chosen = np.sort(np.random.default_rng(0).choice(candidates, MOST_LINKS, replace=False))
    items = "\n".join(_item(report, int(i)) for i in chosen)
    return (
        '<section id="links">\n<h2>Links</h2>\n<div class="search">'
        '<input type="search" id="search" placeholder="Search names and facts" aria-label="Search names and facts">'
        '<select id="status" aria-label="Status"><option value="">all</option><option value="link">links</option>'
        '<option value="no_counterpart">without counterpart</option></select></div>\n'
        f'<p class="note"><span id="count" aria-live="polite">{len(chosen)}</span> found in a random sample of '
        f"{len(chosen):,} out of {len(candidates):,} entities.</p>\n{items}\n</section>"
    )


def _item(report: ReportContent, i: int) -> str:
    links = report.links
    row = links.row(i)
    if row.target is None:
        return (
            f'<details class="link" data-status="{row.status}"><summary>{_name(row.source)}'
            "<span>without counterpart</span></summary></details>"
        )
    return (
        f'<details class="link" data-status="{row.status}"><summary>{_name(row.source)} ≡ {_name(row.target)}'
        f"<span>{row.probability:.3f} · {row.agreement}</span></summary>"
        f"{_facts(report, int(links.sources[i]), int(links.targets[i]))}</details>"
    )


def _name(name: str) -> str:
    """The last part of an IRI, with the whole behind it."""
    short = name.rstrip("/").rsplit("/", 1)[-1].rsplit("#", 1)[-1] if "://" in name else name
    return f'<b title="{escape(name)}">{escape(short or name)}</b>'


def _facts(report: ReportContent, e: int, e2: int) -> str:
    refinement = report.refinement
    if refinement is None:
        return ""
    explanation = refinement.explain(e, e2)
    if not len(explanation):
        return "<p>No fact speaks for it; the encoder alone does.</p>"
    items = "".join(f"<li><i>{fact.share:.0%}</i> {escape(fact.text)}</li>" for fact in explanation[:MOST_FACTS])
    return f"<ol>{items}</ol>"
