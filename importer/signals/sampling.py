"""Evidence from ``generation_config.json`` and the template: sampling values, lengths and end tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import Token, read_vocabulary
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.evidence import Evidence, Rule, Source, warning
from importer.signals.reasons import GenerationReason, StopReason
from importer.signals.sampling_values import GREEDY, is_number, usable

FILE = "generation_config.json"
LENGTH = "max_new_tokens"  # transformers' limit of an answer

# transformers' name and LocalAI's YAML name.
KEYS = (
    ("temperature", "temperature"),
    ("top_p", "top_p"),
    ("top_k", "top_k"),
    ("min_p", "min_p"),
    ("repetition_penalty", "repeat_penalty"),
    ("presence_penalty", "presence_penalty"),
    ("frequency_penalty", "frequency_penalty"),
)


def evidence(snapshot: Snapshot) -> list[Evidence]:
    """Return one fact for each value; zero is one, null is not. What no engine takes is shown without one."""
    data = snapshot.json(FILE)
    greedy = [_fact("parameters.temperature", 0, GREEDY)] if data.get("do_sample") is False else []
    return [*greedy, *_values(data), *_implied(data), *_length(data)]  # greedy with any temperature beside it


def unread_evidence(snapshot: Snapshot, engine: str) -> Iterator[Evidence]:
    """Yield a warning for a file that the engine passes over."""
    if snapshot.passed_over(FILE):
        reason = warning(Reason(GenerationReason.PASSED_OVER, file=FILE))
        yield Evidence(Rule.ENGINE, "backend", engine, FILE, reason)


def _values(data: Mapping[str, object]) -> Iterator[Evidence]:
    for source_key, key in KEYS:
        value = data.get(source_key)
        if value is None:
            continue
        number = usable(key, value)
        quote = f"{source_key}: {value if is_number(value) else repr(value)}"
        if number is not None:
            yield _fact(f"parameters.{key}", number, quote)
        else:
            reason = Reason(GenerationReason.UNUSABLE, file=FILE, quote=quote[:60])
            place = f"parameters.{key}"
            yield Evidence(Rule.GENERATION_CONFIG_UNUSABLE, place, None, FILE, reason, quote[:60])


def _implied(data: Mapping[str, object]) -> Iterator[Evidence]:
    """Yield temperature 1 for sampling without one: the library's default, below the tables in precedence."""
    if data.get("do_sample") is True and not is_number(data.get("temperature")):
        quote = "do_sample: true"
        reason = Reason(GenerationReason.IMPLIED, file=FILE, quote=quote)
        yield Evidence(Rule.GENERATION_CONFIG_IMPLIED, "parameters.temperature", 1.0, FILE, reason, quote)


def _length(data: Mapping[str, object]) -> Iterator[Evidence]:
    tokens = usable("max_tokens", data.get(LENGTH))
    if tokens is not None:
        quote = f"{LENGTH}: {tokens}"
        reason = Reason(GenerationReason.NEW_TOKENS, file=FILE, quote=quote)
        yield Evidence(Rule.GENERATION_CONFIG_LENGTH, "parameters.max_tokens", tokens, FILE, reason, quote)


def _fact(key: str, value: float, quote: str) -> Evidence:
    reason = Reason(GenerationReason.VALUE, file=FILE, quote=quote)
    return Evidence(Rule.GENERATION_CONFIG, key, value, FILE, reason, quote)


CONFIG = "config.json"
TOKENIZER = "tokenizer_config.json"
MOST = 32  # end tokens that are read


def stop_word_evidence(snapshot: Snapshot, analysis: TemplateAnalysis | None) -> list[Evidence]:
    """Return the end tokens, and a stop word where the template's end of turn is not among them."""
    tokens = read_vocabulary(snapshot)
    known = {t.content: t for t in tokens.tokens}
    texts = {t.id: t.content for t in tokens.tokens if t.id is not None}
    source, ids = _listed(snapshot)
    eos = known.get(tokens.named.get("eos_token", ""))
    if eos is not None and eos.id is not None:
        ids = list(dict.fromkeys([*ids, eos.id]))
    turns = [] if analysis is None else _turns(analysis, known)
    unknown = not all(i in texts for i in ids)  # one of them might be a token without a number
    missing = [t for t in turns if t != eos and t.id not in ids and not (t.id is None and unknown)]
    facts = []
    if analysis is not None and missing:
        words = [t.content for t in missing]
        shown = tuple(texts.get(i) or Reason(StopReason.UNNAMED, id=i) for i in ids)
        ends_turn = bool(analysis.end_of_turn)
        reason = Reason(StopReason.END_OF_TURN, ends=ends_turn, words=tuple(words), listed=shown)
        quote = " and ".join(words)
        facts.append(Evidence(Rule.END_OF_TURN, "stopwords", words, Source.TEMPLATE, reason, quote))
        ids += [t.id for t in missing if t.id is not None]
    if ids:
        reason = Reason(StopReason.LISTED, file=None if source == TOKENIZER else source, template=bool(facts))
        ends = {str(i): texts.get(i) for i in ids}
        facts.append(Evidence(Rule.END_TOKENS, "end_tokens", ends, source, reason))
    return facts


def _listed(snapshot: Snapshot) -> tuple[str, list[int]]:
    """Return the file that engines read, and its ids: the generation config's alone, if it exists."""
    for path in (FILE, CONFIG):
        data = snapshot.json(path)
        if data:
            ids = _ids(data)
            if ids or path == FILE:
                return (path if ids else TOKENIZER), ids
    return TOKENIZER, []


def _ids(data: Mapping[str, object]) -> list[int]:
    """Return the ids under ``eos_token_id``, one or several, also under ``text_config``."""
    inner = data.get("text_config")
    for place in (data, inner if isinstance(inner, Mapping) else {}):
        value = place.get("eos_token_id")
        ids = [v for v in (value if isinstance(value, list) else [value]) if type(v) is int and v >= 0]
        if ids:
            return list(dict.fromkeys(ids))[:MOST]
    return []


def _turns(analysis: TemplateAnalysis, known: Mapping[str, Token]) -> list[Token]:
    """Return the special tokens that end a turn, or begin the next, and stand in no completion.

    A turn of calls may end with another one than an answer: what the template prints behind the calls.
    """
    inside = [s.completion for s in analysis.samples]
    ends = [analysis.end_of_turn] if analysis.end_of_turn else [*analysis.next_turns]
    ends += sorted((text for text in known if text and analysis.behind_calls.startswith(text)), key=len)[-1:]
    tokens = [known[end] for end in dict.fromkeys(ends) if end in known]
    return [t for t in tokens if t.special and inside and not any(t.content in text for text in inside)]
