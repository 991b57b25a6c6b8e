"""Values as tables hold them: Python objects of typed columns, and text that may be spelt as an RDF literal."""

from __future__ import annotations

import datetime
import decimal
import math
import numbers

from stea_fast.formats.value_pool import Value

XSD = "http://www.w3.org/2001/XMLSchema#"


def value_of(cell: object) -> Value | None:
    """The value of a number, truth value, date or text as the types of XML Schema spell it; None for anything else."""
    if isinstance(cell, str):
        return Value(cell)
    name = type(cell).__name__
    if isinstance(cell, bool) or name in ("bool_", "bool"):
        return Value("true" if cell else "false", XSD + "boolean")
    if isinstance(cell, decimal.Decimal):
        return Value(format(cell, "f"), XSD + "decimal") if cell.is_finite() else None
    if isinstance(cell, numbers.Integral):
        return Value(str(int(cell)), XSD + "integer")
    if isinstance(cell, numbers.Real):
        return Value(repr(float(cell)), XSD + "double") if math.isfinite(cell) else None
    for kind, datatype in (
        (datetime.datetime, "dateTime"),  # before `date`, of which it is a subclass
        (datetime.date, "date"),
        (datetime.time, "time"),
    ):
        if isinstance(cell, kind):
            return Value(cell.isoformat(), XSD + datatype)
    return None
