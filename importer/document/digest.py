"""The digest that binds a receipt to the data of its YAML."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def canonical(data: object) -> str:
    """Data as canonical JSON: sorted keys, no white space, nothing escaped that need not be."""
    return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(document: Mapping[str, Any]) -> str:
    """``sha256:…`` over the data in canonical JSON; comments, key order and layout do not count."""
    return "sha256:" + hashlib.sha256(canonical(document).encode()).hexdigest()
