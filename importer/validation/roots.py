"""What follows from what: a cause that one probe shows explains what others blame on the engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from importer.validation.blame import OTHERWISE
from importer.validation.outcome import Fail, Inconclusive, Outcome
from importer.validation.probes import (
    calls_kept,
    context_length,
    files_as_imported,
    health,
    long_prompt,
    messages_tools,
    model_listed,
    no_special_tokens,
    own_limit,
    prompt_rendered,
    reasoning_apart,
    settings_read_back,
    simple_answers,
    stop_words,
    stops_cleanly,
    stream_equals_whole,
    system_role,
    tokenize_round_trip,
    tokenizer_whole,
    tools_in_prompt,
    turns_rendered,
)
from importer.validation.prompts.told import TALK
from importer.validation.report import Row
from importer.validation.signs import thinking_markup
from importer.validation.tokenised import OWN

# Where answers are all cut short, or noise, everything that rests on answers follows; with words of the mend.
ANSWERS = simple_answers.NAME
ROOTS = ((own_limit.NAME, own_limit.CAPPED), (ANSWERS, ""))
THOUGHTS = reasoning_apart.NAME
# They look at the engine or count the prompt, and need no sense in what the model writes.
APART = {
    probe.NAME
    for probe in (
        health, model_listed, context_length, settings_read_back, prompt_rendered, turns_rendered,
        system_role, tools_in_prompt, files_as_imported, calls_kept, tokenize_round_trip, tokenizer_whole,
        long_prompt, stops_cleanly,
    )
}  # fmt: skip
LOG = "; its log: "
ANOTHER_ENGINE = (
    "Use another version of the engine; the exchange in the receipt shows its authors what is wrong."
)
BROKEN = r"the connection failed|the engine died|the engine answered 5\d\d|the engine reports an error"


def with_a_mend(row: Row) -> Row:
    """The row; an engine at fault has a change told in any case."""
    if not isinstance(row.outcome, Fail) or row.outcome.mend or row.outcome.attribution != "engine":
        return row
    return replace(row, outcome=replace(row.outcome, mend=ANOTHER_ENGINE))


def traced(rows: Sequence[Row]) -> list[Row]:
    """The rows; those that did not pass for another row's reason are blamed on what that is blamed on.

    Where answers are cut short or noise, that is all that rests on them; for another cause it is what an
    engine is blamed for and the cause explains.
    """
    failed = {row.probe: row.outcome for row in rows if isinstance(row.outcome, Fail)}
    noise = failed.get(ANSWERS)
    if noise is not None and noise.attribution == "model":
        name = next((n for n, makes in NOISE if n in failed and makes(failed[n])), ANSWERS)
        rows = [_following(row, name, failed[name]) if row.probe == ANSWERS else row for row in rows]
        failed = {row.probe: row.outcome for row in rows if isinstance(row.outcome, Fail)}
    for root, words in ROOTS:
        if root in failed and words in (failed[root].mend or "") and not _never_came(failed[root]):
            return [_following(row, root, failed[root]) if _rests_on_answers(row) else row for row in rows]
    told = list(rows)
    for where, words, explains in CAUSES:
        first = next(
            (name for name, o in failed.items() if where in ("", name) and words in (o.mend or "")), None
        )
        if first is not None:
            told = [_following(row, first, failed[first]) if explains(row) else row for row in told]
    lacking = next((row for row in rows if _lacking(row)), None)
    if lacking is not None and isinstance(lacking.outcome, Fail):
        cause = lacking.outcome
        told = [_following(row, lacking.probe, cause) if _broken(row) else row for row in told]
    return told


def _lacking(row: Row) -> bool:
    """Whether the log told what the engine lacks."""
    failed = isinstance(row.outcome, Fail) and row.outcome.attribution == "environment"
    return failed and LOG in row.outcome.reason


def _broken(row: Row) -> bool:
    """Whether an engine is blamed for an answer that never came."""
    return _of_engine(row) and _never_came(row.outcome)


def _never_came(outcome: Outcome) -> bool:
    """Whether there was no answer that could be right or wrong."""
    return re.search(BROKEN, outcome.reason) is not None


def _talks_not(lost: Fail) -> bool:
    """Whether a template does not write an ordinary conversation as it should."""
    return lost.reason.startswith(f"{TALK.name}: ") and "every turn" in lost.mend


# What makes noise of a whole model's answers, and which of its failures do.
NOISE: tuple[tuple[str, Callable[[Fail], bool]], ...] = (
    (turns_rendered.NAME, _talks_not),
    (files_as_imported.NAME, lambda _: True),
    (stop_words.NAME, lambda found: "stopwords" in found.mend),
)


def _rests_on_answers(row: Row) -> bool:
    """Whether the verdict does: an engine that does not tell its parser is judged by a call."""
    parser = row.probe == settings_read_back.NAME and _of_engine(row)
    return parser or row.probe not in APART


def _of_engine(row: Row) -> bool:
    return isinstance(row.outcome, Fail) and row.outcome.attribution == "engine"


def _refused(row: Row) -> bool:
    """Whether an engine is blamed for a refusal."""
    return _of_engine(row) and "the engine answered" in row.outcome.reason


def _answered(row: Row) -> bool:
    """Whether an engine is blamed for an answer."""
    return _of_engine(row) and row.probe not in APART - {long_prompt.NAME}


def _set_up(row: Row) -> bool:
    """Whether an engine is blamed for an answer, or for a prompt, which it writes by its settings, too."""
    return _answered(row) or (_of_engine(row) and row.probe == prompt_rendered.NAME)


def _rests(row: Row) -> bool:
    """Whether the model, or an engine for an answer, or for none, is blamed."""
    return _answered(row) or _broken(row) or (row.outcome.attribution == "model" and row.probe not in APART)


def _otherwise(row: Row) -> bool:
    """Whether a template is blamed for a model that writes otherwise."""
    return isinstance(row.outcome, Fail) and row.outcome.mend.endswith(OTHERWISE)


def _thinks(row: Row) -> bool:
    """Whether an engine is blamed for an answer that holds a thought."""
    told = row.outcome.reason
    return _of_engine(row) and any(thinking_markup(t) for t in (told, told.partition("'")[2]))


def _retold(row: Row) -> bool:
    """Whether a call could not be told in Anthropic's form, which has objects for arguments."""
    return row.probe == messages_tools.NAME and isinstance(row.outcome, Fail)


def _read(row: Row) -> bool:
    """Whether somebody is blamed for an answer."""
    return isinstance(row.outcome, Fail) and row.probe not in APART


# The probe that shows the cause (any, where none is named), words of its mend, and what the cause explains.
CAUSES: tuple[tuple[str, str, Callable[[Row], bool]], ...] = (
    (model_listed.NAME, "", _refused),
    (settings_read_back.NAME, "parser", _set_up),
    (stream_equals_whole.NAME, "_parser", _answered),
    (prompt_rendered.NAME, "add_generation_prompt", _answered),
    ("", "end-of-sequence", _answered),
    (no_special_tokens.NAME, "decoder", _answered),
    (stop_words.NAME, "stopwords", _answered),
    ("", "temperature in parameters", _answered),
    ("", "out of parameters", _answered),
    (THOUGHTS, "", _thinks),
    (prompt_rendered.NAME, "import the model again", _rests),
    (tokenizer_whole.NAME, "", _rests),
    ("", "does not give the template", _read),
    (turns_rendered.NAME, "every turn", _rests),
    ("", "the same as the model's", _answered),
    ("", "decode arguments", _retold),
    ("", OWN, _rests),
    (files_as_imported.NAME, "", _rests),
    (files_as_imported.NAME, "", _otherwise),
)


def _following(row: Row, root: str, cause: Fail) -> Row:
    if not isinstance(row.outcome, Fail | Inconclusive):
        return row
    if (row.outcome.attribution, row.outcome.mend) == (cause.attribution, cause.mend):
        return row
    reason = f"{row.outcome.reason}; see {root}"
    told = replace(row.outcome, reason=reason, attribution=cause.attribution, mend=cause.mend)
    return replace(row, outcome=told)
