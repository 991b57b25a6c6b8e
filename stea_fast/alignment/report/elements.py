"""Pieces of HTML that several sections use. Whatever comes from data goes through `escape`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from stea_fast.alignment.report.names import name_element


class Name(str):
    """The name of an entity or a relation, which a table shows by its local part."""


def section(title: str, content: str, *, note: str = "", name: str = "") -> str:
    """A section with a heading and, in small print, how to read it."""
    return (
        (f'<section id="{name}">' if name else "<section>")
        + f"\n<h2>{escape(title)}</h2>\n{content}\n"
        + (f'<p class="note">{escape(note)}</p>\n' if note else "")
        + "</section>"
    )


def table(header: Sequence[str], rows: Iterable[Sequence[str | float | int]], *, stacked: bool = False) -> str:
    """A table. A stacked one shows its rows as cards on a narrow screen, each value beside its heading."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(_cell(value, name) for value, name in zip(row, header, strict=True)) + "</tr>" for row in rows
    )
    kind = ' class="stacked"' if stacked else ""
    return f"<table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def figure(caption: str, chart: str) -> str:
    """A chart under its caption."""
    return f"<figure><figcaption>{escape(caption)}</figcaption>{chart}</figure>"


def figures(*parts: str) -> str:
    """Figures side by side where there is room."""
    return f'<div class="figures">{"".join(parts)}</div>'


def _cell(value: str | float | int, heading: str) -> str:
    label = f' data-label="{escape(heading)}"'
    if isinstance(value, float):
        return f'<td class="n"{label}>{value:.3f}</td>'
    if isinstance(value, int):
        return f'<td class="n"{label}>{value:,}</td>'
    return f"<td{label}>{name_element(value) if isinstance(value, Name) else escape(value)}</td>"
