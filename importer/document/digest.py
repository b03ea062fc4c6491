"""The digest that binds a receipt to the data of its YAML."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def digest(document: Mapping[str, Any]) -> str:
    """``sha256:…`` over the data in canonical JSON; comments, key order and layout do not count."""
    canonical = json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
