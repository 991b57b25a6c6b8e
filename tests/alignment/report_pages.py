"""What the tests of the report share: its tables, unpacked as the page unpacks them."""

from __future__ import annotations

import base64
import json
import re
import zlib

EVIL = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'
RIGHT_TO_LEFT = "http://example.org/entity/\u202eمحمد"


def unpacked(page, name="table"):
    packed = re.search(rf'<script type="text/plain" id="{name}">([^<]*)</script>', page.read_text(encoding="utf-8"))
    return json.loads(zlib.decompress(base64.b64decode(packed[1])))


def names_of(packed):
    return [packed["spaces"][space] + local for space, local in zip(packed["space"], packed["local"], strict=True)]
