"""Parsers that a tokenizer's configuration declares, and parsers with the name of the model type.

Examples of the latter: lfm2 for lfm2, nemotron_v3 for nemotron_h.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from importer import backends
from importer.chat_template.vocabulary import read_vocabulary
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.architecture import model_types
from importer.signals.evidence import Evidence, Rule, Source
from importer.signals.family import own_name
from importer.signals.name_likeness import Likeness, closest, plain_name
from importer.signals.reasons import ClaimReason, KinReason, ShownReason
from importer.signals.template_markers import STRIPPED, load_parser_markers, translate

FILE = "tokenizer_config.json"
CHAT = re.compile(r"(?:^|[^a-z])(?:instruct|chat|it)(?:[^a-z]|$)", re.IGNORECASE)
INSTRUCT = re.compile(r"(?:^|[^a-z])(?:instruct|base|chat|it)(?:[^a-z]|$)", re.IGNORECASE)
WORDS_OF_CLASSES = re.compile(r"(?:Engine)?(?:Tool|Reasoning)?(?:Parser|Detector)")


def declared_parsers(snapshot: Snapshot, engine: str) -> list[Evidence]:
    """Return the parsers that ``tokenizer_config.json`` declares.

    ``tool_parser_type`` holds mlx-lm's own name; vLLM's ``hf`` parsers read ``response_template``. The latter
    has the lowest precedence: ``hf`` rejects required and named tool choice.
    """
    facts = []
    config = snapshot.json(FILE)
    named = config.get("tool_parser_type")
    if isinstance(named, str) and named:
        own = backends.MLX.name
        parser = named if engine == own else translate("tool_parser", named, own, engine)
        if parser is not None:
            quote = f"tool_parser_type: {named}"
            reason = Reason(ClaimReason.TOOL_PARSER_TYPE, file=FILE, quote=quote)
            facts.append(Evidence(Rule.REPOSITORY_CLAIM, "tool_parser", parser, FILE, reason, quote))
    fields = str(config.get("response_template") or "")  # its fields stand at varying depth
    for key, field in (("tool_parser", "tool_calls"), ("reasoning_parser", "thinking")):
        if backends.of(engine).adapts and field in fields:
            reason = Reason(ClaimReason.RESPONSE_TEMPLATE, file=FILE, field=field)
            facts.append(Evidence(Rule.RESPONSE_TEMPLATE, key, "hf", FILE, reason, "response_template"))
    return facts


def model_type_match(
    snapshot: Snapshot, engine: str, parsers: Mapping[str, Mapping[str, str]], *, calls: bool, thinks: bool
) -> list[Evidence]:
    """Return a tool parser of exactly the type's name, and a reasoning parser of its name or its line.

    The name of a parser's class counts, too. ``parsers`` is the registry of ``engine``: field to names and
    their classes. ``calls`` and ``thinks`` are whether the template leaves it open that the model calls tools
    and reasons; one model type has such models and others. The tokens of calls show a model that calls them
    under any template.
    """
    facts = []
    for model_type in model_types(snapshot):
        for key, by_name, rule in (
            ("tool_parser", exact, Rule.TYPE_NAME),
            ("reasoning_parser", of_line, Rule.TYPE_LINE),
        ):
            known = parsers.get(key, {})
            name = by_name(model_type, known) or of_class(model_type, known)
            possible = thinks if by_name is of_line else calls or _has_tokens(snapshot, engine, name)
            if name is not None and possible:
                reason = Reason(KinReason.NAMED, model_type=model_type, parser=name)
                facts.append(Evidence(rule, key, name, "config.json", reason, f"model_type: {model_type}"))
    return facts


def _has_tokens(snapshot: Snapshot, engine: str, tool: str | None) -> bool:
    """Return whether all markers of the tool parser that speak of calls are tokens of the vocabulary."""
    known = load_parser_markers(engine, "tool").get(tool or "")
    named = [m for m in known.markers if "call" in m.lower()] if known else []
    return bool(named) and read_vocabulary(snapshot).contents.issuperset(named)


def name_match(
    snapshot: Snapshot,
    parsers: Mapping[str, Mapping[str, str]],
    facts: Sequence[Evidence],
    *,
    ignore_name: bool,
) -> list[Evidence]:
    """Return the parsers with the name of the model type or of the repository, or of an earlier version.

    ``facts`` may rule out tools or reasoning. A parser without a version is for any version, so that only an
    unversioned name is like it.
    """
    found = []
    named = () if ignore_name else (own_name(snapshot),)
    bare = any(fact.reason.kind is ShownReason.NO_TEMPLATE for fact in facts)
    if bare and not any(CHAT.search(name) for name in named):
        named = ()  # a base model has the same name
    for key in ("tool_parser", "reasoning_parser"):
        if not is_possible(key, facts, "" if ignore_name else own_name(snapshot)):
            continue
        for name in dict.fromkeys((*model_types(snapshot), *named)):
            known = parsers.get(key, {})
            for liked in closest(name.rpartition("/")[2], known) or closest(name, known):
                if liked.likeness is not Likeness.EARLIER or liked.version:
                    reason = Reason(KinReason.LIKE, name=name, parser=liked.parser)
                    found.append(Evidence(Rule.NAME_LIKE, key, liked.parser, Source.NAME, reason, name))
    return found


def is_possible(key: str, facts: Sequence[Evidence], name: str) -> bool:
    """Return whether the template leaves it open that the model calls tools, or reasons.

    Without a template a name for instructions means no reasoning.
    """
    shown = [f.reason for f in facts if f.key == key and isinstance(f.reason.kind, ShownReason)]
    if key == "tool_parser":
        return not any(r.kind is ShownReason.NO_CALLS and not r.fields["shown"] for r in shown)
    if any(r.kind is ShownReason.NO_TEMPLATE for r in shown):
        return INSTRUCT.search(name) is None
    return any(
        r.kind is ShownReason.SWITCHES
        or (r.kind is ShownReason.THINKS and (not r.fields["idle"] or r.fields["by"] == STRIPPED))
        for r in shown
    )


def exact(model_type: str, names: Mapping[str, str]) -> str | None:
    """Return the parser with the name of the type, punctuation aside."""
    return next((n for n in names if plain_name(n) == plain_name(model_type) != ""), None)


def of_class(model_type: str, names: Mapping[str, str]) -> str | None:
    """Return the parser whose class alone has the name of the type (``openai``: ``GptOssToolParser``).

    A name that goes on behind the type's, as ``qwen3_coder``, is for other models.
    """
    wanted = plain_name(model_type)
    named = {
        WORDS_OF_CLASSES.split(cls)[0]: name
        for name, cls in names.items()
        if not plain_name(name).startswith(wanted)
    }
    found = None if exact(model_type, names) else exact(model_type, named)
    return None if found is None else named[found]


def of_line(model_type: str, names: Mapping[str, str]) -> str | None:
    """Return the only parser of the type's line, unless its version differs; ``None`` for several."""
    line = [n for n in names if _stem(n) == _stem(model_type) != ""]
    if len({names[n] for n in line}) != 1:
        return None
    one, other = _number(line[0]), _number(model_type)
    begins = plain_name(model_type).startswith(plain_name(line[0]))
    return line[0] if begins or not one or not other or one == other else None


def _stem(name: str) -> str:
    return re.split(r"[^a-z]", name.lower(), maxsplit=1)[0]


def _number(name: str) -> str:
    match = re.search(r"[0-9]+", name)
    return match[0] if match else ""
