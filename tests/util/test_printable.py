"""Names of anybody on the terminal: they are read, and do nothing."""

from __future__ import annotations

import json

from stea_fast._util.printable import printable, printable_json, printable_line

ESCAPES = "\x1b[2J\x1b]0;title\x07\x9b31m\r\x7f\u202e\ud800"


def test_ordinary_text_in_any_script_stays_as_it_is():
    text = "Köln 金大中 שלום\u200f 🙂 a\tb\nc"
    assert printable(text) == text
    assert printable_line("Köln 金大中") == "Köln 金大中"


def test_whatever_could_act_on_a_terminal_is_spelt_out():
    shown = printable(f"a{ESCAPES}b")
    assert shown == "a\\x1b[2J\\x1b]0;title\\x07\\x9b31m\\r\\x7f\\u202e\\ud800b"
    assert printable_line("one\ntwo\t") == "one\\ntwo\\t"
    shown.encode()  # halves of characters could not be printed


def test_json_says_the_same_without_them():
    record = {"name": ESCAPES, "plain": "Köln\n"}
    text = printable_json(json.dumps(record, ensure_ascii=False, indent=1))
    assert json.loads(text) == record
    assert "Köln" in text and not set(text) & set("\x1b\x9b\x7f\u202e\ud800")
