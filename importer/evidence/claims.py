"""What a repository claims about its own parsers; claims choose among what the proof lets pass."""

from __future__ import annotations

from enum import StrEnum

from importer.evidence.fact import Evidence
from importer.evidence.formats import translate
from importer.evidence.rule import Rule
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason

FILE = "tokenizer_config.json"


class ClaimReason(StrEnum):
    """What a repository claims of its parsers."""

    TOOL_PARSER_TYPE = "tool-parser-type"
    RESPONSE_TEMPLATE = "response-template"


def evidence(snapshot: Snapshot, engine: str) -> list[Evidence]:
    """``tool_parser_type`` is mlx-lm's own name; ``response_template`` is what vLLM's ``hf`` parsers read.

    The latter is heard last: ``hf`` refuses required and named tool choice, so a parser made for the format
    is better wherever one reads it.
    """
    facts = []
    config = snapshot.json(FILE)
    named = config.get("tool_parser_type")
    if isinstance(named, str) and named:
        parser = named if engine == "mlx" else translate("tool_parser", named, "mlx", engine)
        if parser is not None:
            quote = f"tool_parser_type: {named}"
            reason = Reason(ClaimReason.TOOL_PARSER_TYPE, file=FILE, quote=quote)
            facts.append(Evidence(Rule.REPOSITORY_CLAIM, "tool_parser", parser, FILE, reason, quote))
    fields = _fields(config.get("response_template"))
    for key, field in (("tool_parser", "tool_calls"), ("reasoning_parser", "thinking")):
        if engine == "vllm" and field in fields:
            reason = Reason(ClaimReason.RESPONSE_TEMPLATE, file=FILE, field=field)
            facts.append(Evidence(Rule.RESPONSE_TEMPLATE, key, "hf", FILE, reason, "response_template"))
    return facts


def _fields(template: object) -> str:
    """The template as text to look into: its fields are named in it at varying depth."""
    return "" if template is None else str(template)
