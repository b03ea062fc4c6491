"""What the edges of a tokenizer's file add to the evidence; they are read where nothing else decides."""

from __future__ import annotations

from collections.abc import Sequence

from importer.chat_template.study import TemplateAnalysis
from importer.decisions.frontends import REASONING
from importer.document import engine_data
from importer.hub.snapshot import Snapshot
from importer.signals import begin_token
from importer.signals.evidence import Evidence
from importer.signals.mistral_files import TOKENIZER_MODE


def of_begin(
    snapshot: Snapshot, study: TemplateAnalysis | None, backend: str, *, offline: bool
) -> list[Evidence]:
    """Return the warning about a first token that chats lack, by the settings, else by the tokenizer."""
    token, adds = begin_token.lacking(snapshot, study, backend), begin_token.declared(snapshot)
    if token is None or adds is False:
        return []
    if adds:
        return [begin_token.evidence(token, backend, begin_token.SETTINGS)]
    from importer.hub import tensor_headers

    head = tensor_headers.edge(snapshot, begin_token.TOKENIZER, begin_token.HEAD, offline=offline)
    found = head is not None and begin_token.added(head, token)
    return [begin_token.evidence(token, backend, begin_token.TOKENIZER)] if found else []


def of_control(
    snapshot: Snapshot, evidence: Sequence[Evidence], backend: str, *, offline: bool
) -> list[Evidence]:
    """Return the reasoning parsers that something names, and that lack the tokens of their format."""
    needed = engine_data.load(backend).control_tokens
    own = any(e.key == TOKENIZER_MODE and e.value == "mistral" for e in evidence)
    claims = [e for e in evidence if e.key == REASONING and e.rule.names_parsers and e.value in needed]
    if not own or not claims:
        return []
    from importer.hub import tensor_headers
    from importer.signals import control_tokens

    tail = tensor_headers.edge(snapshot, control_tokens.FILE, -control_tokens.TAIL, offline=offline)
    tokens = None if tail is None else control_tokens.read(tail)
    return [] if tokens is None else control_tokens.evidence(claims, needed, tokens)
