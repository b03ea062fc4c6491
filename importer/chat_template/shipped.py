"""Templates that an engine ships for models whose own template hides the tools: a generated registry.

The registry holds names, hashes and the form of a call, never a template's text: the user has the file from
the engine's image or its released sources.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from importer import config
from importer.chat_template.cases import QUESTION
from importer.chat_template.markers import last_marker
from importer.chat_template.samples import Sample
from importer.frozen import frozen

FILE = "shipped_templates.json"  # written by ``python -m gen_defaults shipped``


@frozen
class Shipped:
    """A template of an engine's release.

    ``path``     in the released sources; ``sha256`` of its bytes, hexadecimal.
    ``opening``  the marker before a question; ``call`` the text of the one call, without white space.
    """

    path: str
    sha256: str
    opening: str
    call: str

    def fits(self, shape: Mapping[str, str]) -> bool:
        """Return whether a model's own template writes questions and calls alike.

        Older templates leave out the marker that closes a list of calls.
        """
        call = shape["call"]
        alike = self.call.startswith(call) or call.startswith(self.call)
        return bool(call) and alike and self.opening == shape["opening"]


def shape_of(one_call: Sample) -> dict[str, str]:
    """Return the marker before the question of a sample, and its call without white space."""
    before = one_call.prompt.rpartition(QUESTION)[0]
    call = "".join(one_call.completion[one_call.lead :].split())
    return {"opening": last_marker(before).strip(), "call": call}


@cache
def registry() -> Mapping[str, Any]:
    """Return the registry's data, engine by engine."""
    text = config.data(FILE).read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def release(engine: str) -> str:
    """Return the file of the sources that hold the engine's templates; empty without any."""
    return str(registry().get(engine, {}).get("source", {}).get("file", ""))


def fitting(engine: str, shape: Mapping[str, str]) -> tuple[Shipped, ...]:
    """Return the templates of an engine's release that write calls as a model's own template does."""
    listed = registry().get(engine, {}).get("templates", ())
    return tuple(one for row in listed if (one := Shipped(**row)).fits(shape))
