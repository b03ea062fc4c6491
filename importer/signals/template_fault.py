"""Evidence against a chat template that engines cannot use: a broken list, no text, nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from importer.chat_template import find
from importer.chat_template.find import TemplateFault
from importer.chat_template.request_coverage.findings import KEY as WAY_IN
from importer.hub.snapshot import Snapshot
from importer.signals.evidence import Evidence, Rule, Source, warning


def evidence(snapshot: Snapshot, engine: str, kind: str, facts: Sequence[Evidence]) -> Iterator[Evidence]:
    """Yield a warning for the engine: every engine loads templates with transformers.

    A broken list keeps any model from its start; the others matter to a model that chats by its own template.
    """
    fault = find.fault(snapshot)
    if fault is None:
        return
    replaced = any(fact.key == WAY_IN and fact.source != Source.TEMPLATE for fact in facts)
    if fault.kind is TemplateFault.ENTRY or (kind == "chat" and not replaced):
        yield Evidence(Rule.ENGINE, "backend", engine, str(fault.fields["file"]), warning(fault))
