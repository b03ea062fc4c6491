"""A response template derived from a chat template: a parser as data, in the language of transformers.

transformers (5.13 and later) and vLLM's ``hf`` parsers read model output by ``response_template`` of the
tokenizer's configuration: fields with delimiters and one of a few readers of their content. Everything it
needs is learnt from the samples; the proof decides whether it is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from importer.chat_template.cases import ANSWER, FOLLOW_UP, QUESTION, REASONING, RESULT
from importer.chat_template.markers import SHAPE, Marks
from importer.chat_template.samples import Sample
from importer.chat_template.study import TemplateAnalysis
from importer.proof.call_fields import learn
from importer.proof.delimiters import SECTION

ResponseTemplate = Mapping[str, Any]
SPOKEN = (QUESTION, RESULT, FOLLOW_UP)  # the texts of others that a prompt can end with
ANSWERS = ("no-call", "answer-after-result", "plain", "thinking-off", "thinking-none")
LONGEST = 8  # candidates of one chat template
FEW = 32  # markers at the end of a head, at which an anchor may begin


def derive(analysis: TemplateAnalysis, declared: Sequence[str]) -> Iterator[ResponseTemplate]:
    """Yield candidates, the most literal first; ``declared`` are the tokens of the repository.

    A candidate without ``tool_calls`` or ``thinking`` has none to read. There is no candidate without the
    start of the model's turn.
    """
    marks = Marks(declared)
    anchors = start_anchors(analysis, marks)
    if not anchors:
        return
    anchor = anchors[0] if len(anchors) == 1 else anchors
    for calls in [*learn(analysis.samples, marks)][:LONGEST] or [{}]:
        sections = calls.pop(SECTION, ())
        fields = _thinking(analysis) | _content(analysis, sections)
        if calls:
            fields["tool_calls"] = _at_end(calls, analysis)
        if set(fields) != {"content"}:
            yield {"start_anchor": anchor, "fields": fields}


def start_anchors(analysis: TemplateAnalysis, marks: Marks) -> list[str]:
    """Return the texts directly before the model's own: one, or one for each way that a turn begins."""
    opened = _content(analysis)["content"].get("open")
    opening = analysis.thinking.markers[0] if analysis.thinking.markers else ""
    starts = [m.strip() for m in (opening, opened or "") if m.strip()]
    heads = dict.fromkeys(_head(s.prompt, starts) for s in analysis.samples)
    texts = [h for h in heads if h.strip()]
    if not texts:
        return []
    shared = texts[0]
    for text in texts[1:]:
        shared = marks.suffix(shared, text) if shared != text else shared
    ends = [text for s in analysis.samples for text in [s.prompt[_spoken(s.prompt) :]]]
    kinds = [shared] if len(shared.strip()) > 2 else texts
    return list(dict.fromkeys(_shortest(kind, ends) for kind in kinds))


def _spoken(prompt: str) -> int:
    """Return the place behind the last turn of another."""
    return max((at + len(text) for text in SPOKEN if (at := prompt.rfind(text)) >= 0), default=0)


def _head(prompt: str, starts: Sequence[str]) -> str:
    """Return the text between the last turn of another and the model's first own character."""
    rest = prompt[_spoken(prompt) :]
    cuts = [at for start in starts if (at := rest.find(start)) > 0]
    return rest[: min(cuts)].rstrip(" ") if cuts else rest


def _shortest(head: str, ends: Sequence[str]) -> str:
    """Return the shortest end of the head, from a marker on, that never occurs behind the head."""
    begins = [m.start() for m in SHAPE.finditer(head)] or [len(head) - len(head.lstrip("\n"))]
    behind = [end[end.find(head) + len(head) :] for end in ends if head in end]
    for start in reversed(begins[-FEW:]):
        anchor = head[start:]
        if not any(anchor in (anchor[1:] + rest) for rest in behind):
            return anchor
    return head[begins[-FEW:][0] :]


def _thinking(analysis: TemplateAnalysis) -> dict[str, Any]:
    if analysis.thinking.markers is None:
        return {}
    opening, closing = (m.strip() for m in analysis.thinking.markers)
    return {"thinking": {"open": opening, "close": closing}} if opening and closing else {}


def _content(analysis: TemplateAnalysis, sections: Sequence[str] = ()) -> dict[str, Any]:
    """Return the field of the answer: the rest of the text, or what stands between its own markers.

    ``sections`` are marks around all calls. They end the rest of the text, so that they are in no answer.
    """
    around = [_after_reasoning(s).partition(ANSWER) for s in analysis.samples if _answers(s)]
    reasoning = analysis.thinking.markers or ()
    befores = (_without(before, reasoning) for before, _, _ in around)
    opens = next((b for b in befores if b), _after_block(analysis))
    behind = next((b.strip() for _, _, b in around if b.strip()), "")
    silent = () if opens else sections
    ends = [e for e in dict.fromkeys((behind, analysis.end_of_turn.strip(), *silent)) if e]
    closes = {"close": ends if len(ends) > 1 else ends[0]} if ends else {}
    return {"content": {**({"open": opens} if opens else {}), **closes}}


def _without(text: str, markers: Sequence[str]) -> str:
    for marker in markers:
        text = text.replace(marker.strip(), "")
    return text.strip()


def _answers(sample: Sample) -> bool:
    return sample.case in ANSWERS and ANSWER in sample.completion


def _after_block(analysis: TemplateAnalysis) -> str:
    """Return the marker that a template writes between reasoning and answer."""
    if analysis.thinking.markers is None:
        return ""
    behind = analysis.thinking.block[1].strip().removeprefix(analysis.thinking.markers[1].strip()).strip()
    return behind if SHAPE.search(behind) else ""


def _after_reasoning(sample: Sample) -> str:
    at = sample.completion.find(REASONING)
    return sample.completion[sample.lead :] if at < 0 else sample.completion[max(sample.lead, at) :]


def _at_end(calls: dict[str, Any], analysis: TemplateAnalysis) -> dict[str, Any]:
    """Return the field with the end of the turn among its literal ends, for texts that still have it."""
    end = analysis.end_of_turn.strip()
    if not end or "close_pattern" in calls:
        return calls
    return {**calls, "close": [*calls.get("close", ()), end]}
