"""Root causes: the failure of one probe explains failures of others, by rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from importer.frozen import frozen
from importer.reasons import Reason
from importer.validation import served_engine
from importer.validation.errors import AnswerFailure
from importer.validation.expectations import CommonReason
from importer.validation.outcome import (
    BY_ANSWERS,
    OF_WEIGHTS,
    Fail,
    Inconclusive,
    Outcome,
    ProbeRow,
    Stage,
    asks_for,
    broken_in_answer,
    first_broken,
    not_compared,
    not_shown,
)
from importer.validation.probes.cache import prefix_cache
from importer.validation.probes.chat import (
    likelihood,
    long_prompt,
    no_special_tokens,
    plain_chat,
    simple_answers,
    stream_equals_whole,
    token_limit,
)
from importer.validation.probes.message_forms import message_forms
from importer.validation.probes.other_apis import messages
from importer.validation.probes.prompt import (
    TokenizerReason,
    prompt_counts,
    prompt_rendered,
    template_coverage,
    token_numbers,
    tokenizer_whole,
)
from importer.validation.probes.reasoning import reasoning_apart
from importer.validation.probes.sampling import OptionReason, request_options, sampling_arrives, stop_strings
from importer.validation.probes.server import (
    ContextLengthReason,
    SettingsReason,
    files_as_imported,
    health,
    model_listed,
    settings_read_back,
)
from importer.validation.probes.tools import tools_in_prompt
from importer.validation.progress import not_asked
from importer.validation.prompts import TALK
from importer.validation.remedy import PARSER_OF, Remedy
from importer.validation.tool_markup import thinking_markup

Explains = Callable[[ProbeRow], bool]
ANSWERS = simple_answers.name
THOUGHTS = reasoning_apart.name
# Probes of the engine and of the prompt: they do not depend on the answers of the model.
APART = {
    probe.name
    for probe in (
        health, model_listed, settings_read_back, prompt_rendered, prompt_counts,
        template_coverage,
        message_forms, tools_in_prompt, files_as_imported, tokenizer_whole,
        token_numbers, long_prompt,
    )
} | {served_engine.STOPS_CLEANLY}  # fmt: skip
# Probes that send no chat.
OFFLINE = {
    probe.name
    for probe in (
        health, model_listed, files_as_imported, template_coverage, tokenizer_whole,
    )
} | {served_engine.STOPS_CLEANLY}  # fmt: skip
# Changes of the parser that a document names.
NAMES_PARSER = (
    Remedy.SET_PARSER, Remedy.SET_PARSER_TYPE, Remedy.SET_PARSER_FOR_CASE, Remedy.SET_PARSER_IN_PIECES,
    Remedy.LEAVE_OUT_PARSER,
)  # fmt: skip
PARSERS = (*NAMES_PARSER, *PARSER_OF, Remedy.NO_PARSER_READS, Remedy.OTHER_VERSION_READS,
           Remedy.START_WITH_PARSER)  # fmt: skip
SENDS = (Remedy.SEND_SAMPLING, Remedy.SEND_VALUE)
TURNS = (Remedy.RENDER_EVERYTHING, Remedy.END_TURNS, Remedy.BEGIN_TURNS_ALIKE)
# Changes of the chat template, wherever it stands.
TEMPLATES = (
    Remedy.RENDER_TOOL_ROLE, Remedy.RENDER_TOOLS, Remedy.WRITE_ARGUMENTS, Remedy.WRITE_NULL_AS_NOTHING,
    Remedy.RENDER_CALLS, Remedy.RENDER_TURNS, Remedy.RENDER_IMAGES, Remedy.TAKE_OUT_BEGINNING,
    Remedy.HEED_GENERATION_PROMPT, Remedy.CLOSE_BLOCK, Remedy.RENDER_SYSTEM_ROLE, Remedy.RENDER_EVERY_RESULT,
    Remedy.SHOW_TOOLS, Remedy.NO_CLOCK, Remedy.NO_ESCAPING, Remedy.WRITE_EMPTY, Remedy.TAKE_THOUGHTS_OFF,
    Remedy.SYSTEM_ONCE, Remedy.END_TURNS, Remedy.OPEN_THOUGHT, Remedy.WRITE_TURNS, Remedy.BEGIN_TURNS_ALIKE,
    Remedy.RENDER_EVERYTHING, Remedy.RENDER_UNALTERED, Remedy.RENDER_TEXT, Remedy.TELL_AS_WRITTEN,
    Remedy.LIST_TOOLS, Remedy.OTHER_TEMPLATE,
)  # fmt: skip
BARE = "bare"  # the conversation of request coverage that is one question
PENALTIES = (
    Remedy.TAKE_OUT_REPEAT_PENALTY, Remedy.TAKE_OUT_PRESENCE_PENALTY, Remedy.TAKE_OUT_FREQUENCY_PENALTY,
)  # fmt: skip


@frozen
class RootCause:
    """A cause with the failure that shows it and the failures that follow.

    ``probe``     the probe that fails; any, where it is ``None``.
    ``remedies``  the remedies of that failure; any, where there are none.
    ``explains``  whether another row follows from it.
    ``where``     a further condition on the failure.
    """

    probe: str | None
    remedies: tuple[Remedy, ...]
    explains: Explains
    where: Callable[[Fail], bool] = lambda _: True

    def shown(self, failed: Mapping[str, Fail]) -> str | None:
        """Return the first probe that shows the cause, or ``None``."""
        return next((name for name, failure in failed.items() if self._shows(name, failure)), None)

    def _shows(self, name: str, failure: Fail) -> bool:
        matches = not self.remedies or asks_for(failure, *self.remedies)
        return self.probe in (None, name) and matches and self.where(failure)


def came(failure: Fail) -> bool:
    """Return whether there was an answer to judge."""
    return not _never_came(failure)


def broken(row: ProbeRow) -> bool:
    """Return whether a missing answer is attributed to an engine."""
    return of_engine(row) and _never_came(row.outcome)


def _never_came(outcome: Outcome) -> bool:
    """Return whether there was no answer to judge."""
    broke = (
        int(str(reason.fields["status"])) >= 500
        for reason in outcome.reasons
        if reason.kind is AnswerFailure.REFUSED
    )
    return any(broke) or outcome.gives(
        AnswerFailure.UNREACHABLE, AnswerFailure.DIED, AnswerFailure.REPORTS_ERROR
    )


def _talks_not(lost: Fail) -> bool:
    """Return whether the template fails on an ordinary conversation."""
    return lost.within[:1] in ((TALK.name,), (BARE,))


def _begins_turns(failure: Fail) -> bool:
    """Return whether the remedy is about the beginning of an answer."""
    variable = failure.remedy.fields.get("variable") if failure.remedy is not None else None
    return variable in (None, "add_generation_prompt")


def _rests_on_answers(row: ProbeRow) -> bool:
    """Return whether the verdict depends on answers.

    That on a parser does, where the engine does not report it and a call decides.
    """
    called = row.outcome.gives(SettingsReason.NOT_RUN)
    return called or row.probe not in APART


def of_engine(row: ProbeRow) -> bool:
    """Return whether a failure is attributed to an engine."""
    return isinstance(row.outcome, Fail) and row.outcome.attribution == "engine"


def _refused(row: ProbeRow) -> bool:
    """Return whether a refusal is attributed to an engine."""
    return of_engine(row) and row.outcome.gives(AnswerFailure.REFUSED)


def _answered(row: ProbeRow) -> bool:
    """Return whether an answer is attributed to an engine."""
    return of_engine(row) and row.probe not in APART - {long_prompt.name}


def _of_clients(failure: Fail) -> bool:
    """Return whether of several clients one got the answer of another."""
    return failure.within[:1] == ("clients",)


def _of_temperature(failure: Fail) -> bool:
    """Return whether every answer has another temperature than its request."""
    kinds = OptionReason
    return failure.gives(kinds.COLD_DIFFERS, kinds.ALL_ALIKE)


def _by_chance(failure: Fail) -> bool:
    """Return whether the tokenizer makes other tokens of a text each time: no two requests are alike."""
    return failure.gives(TokenizerReason.BY_CHANCE)


def _unlisted(failure: Fail) -> bool:
    """Return whether the server does not know the model by its name."""
    return not failure.gives(ContextLengthReason.OTHER)


def _set_up(row: ProbeRow) -> bool:
    """Return whether an answer, or a prompt that depends on settings, is attributed to an engine."""
    return _answered(row) or (of_engine(row) and row.probe == prompt_rendered.name)


def rests(row: ProbeRow) -> bool:
    """Return whether an answer or its absence is attributed to an engine, or an answer to the model."""
    return _answered(row) or broken(row) or (row.outcome.attribution == "model" and row.probe not in APART)


def _goes_on(row: ProbeRow) -> bool:
    """Return whether an answer, that may hold what follows its end, is attributed to an engine or a model."""
    of_both = isinstance(row.outcome, Fail) and row.outcome.attribution in ("engine", "model")
    return _answered(row) or (of_both and _rests_on_answers(row))


def _writes_on(row: ProbeRow) -> bool:
    """Return whether an answer has no end."""
    return row.outcome.gives(CommonReason.STILL_WRITING, CommonReason.STILL_THINKING)


def _thinks(row: ProbeRow) -> bool:
    """Return whether an answer that quotes a thought is attributed to an engine."""
    quoted = (value for reason in row.outcome.reasons for value in reason.fields.values())
    return of_engine(row) and any(isinstance(text, str) and thinking_markup(text) for text in quoted)


def _with_variables(row: ProbeRow) -> bool:
    """Return whether the engine is seen to set a variable: its own switch of thinking may be turned round."""
    return asks_for(row.outcome, Remedy.START_WITH_VARIABLES)


def _of_the_dice(failure: Fail) -> bool:
    """Return whether the engine draws with another temperature, or with values that nobody knows."""
    name = failure.remedy.fields.get("name") if failure.remedy is not None else None
    return name in (None, "temperature")


def _by_sampling(row: ProbeRow) -> bool:
    """Return whether an answer may be wrong for another sampling than the document's."""
    blamed = isinstance(row.outcome, Fail) and row.outcome.attribution in BY_ANSWERS
    return blamed and _rests_on_answers(row)


def _retold(row: ProbeRow) -> bool:
    """Return whether a call failed in the format of Anthropic, that has objects for arguments."""
    return row.probe == messages.name and isinstance(row.outcome, Fail)


def _read(row: ProbeRow) -> bool:
    """Return whether an answer failed, with any attribution."""
    return isinstance(row.outcome, Fail) and row.probe not in APART


def _sent(row: ProbeRow) -> bool:
    """Return whether a verdict depends on requests and their answers."""
    return row.probe not in OFFLINE and row.outcome.attribution != "environment"


def _of_files(row: ProbeRow) -> bool:
    """Return whether a failure, or what came to no conclusion, may follow from other files."""
    return isinstance(row.outcome, Fail | Inconclusive) and row.outcome.attribution not in (
        None,
        "environment",
    )


def _declined(row: ProbeRow) -> bool:
    """Return whether a request was refused."""
    return isinstance(row.outcome, Fail) and row.outcome.gives(AnswerFailure.REFUSED)


# Causes of wrong simple answers of an intact model.
NOISE = (
    RootCause(prompt_rendered.name, (Remedy.ONE_TEMPLATE, Remedy.RENDER_TEXT), _rests_on_answers),
    RootCause(sampling_arrives.name, SENDS, _rests_on_answers, _of_the_dice),
    RootCause(template_coverage.name, TURNS, _rests_on_answers, _talks_not),
    RootCause(stop_strings.name, (Remedy.TAKE_OUT_STOPWORD,), _rests_on_answers),
)
# Where all answers are cut or wrong, every verdict on answers follows.
ROOTS = (
    RootCause(files_as_imported.name, (), _of_files),
    RootCause(prompt_rendered.name, (Remedy.RENDER_TEXT,), _sent),
    RootCause(tokenizer_whole.name, (Remedy.OWN_TOKENIZER,), _sent, _by_chance),
    RootCause(request_options.name, (Remedy.OWN_ANSWERS, Remedy.OWN_STREAMS), _sent, _of_clients),
    RootCause(prompt_counts.name, (Remedy.SERVERS_ALIKE, Remedy.TAKE_OUT_ARGUMENT), _sent),
    RootCause(request_options.name, (Remedy.OWN_ANSWERS, Remedy.NO_CAP), _sent),
    RootCause(prompt_counts.name, (Remedy.REQUESTS_UNALTERED,), _sent),
    RootCause(request_options.name, (Remedy.HEED_OPTIONS,), _rests_on_answers, _of_temperature),
    RootCause(token_limit.name, (Remedy.RAISE_LIMITS,), _rests_on_answers, came),
    RootCause(ANSWERS, (), _rests_on_answers, came),
)
CAUSES = (
    RootCause(None, (Remedy.RAISE_BODY_LIMIT,), _declined),
    RootCause(None, (Remedy.CORRECT_SETTING, Remedy.SHORTER_KEEP_ALIVE), broken),
    RootCause(None, (Remedy.SERVERS_ALIKE,), _answered),
    RootCause(model_listed.name, (), _refused, _unlisted),
    RootCause(settings_read_back.name, PARSERS, _set_up),
    RootCause(stream_equals_whole.name, NAMES_PARSER, _answered),
    RootCause(
        prompt_rendered.name,
        (Remedy.HEED_GENERATION_PROMPT, Remedy.TAKE_OUT_VARIABLE),
        _answered,
        _begins_turns,
    ),
    RootCause(None, (Remedy.END_TURN, Remedy.END_AT, Remedy.DECLARE), _goes_on),
    RootCause(plain_chat.name, (Remedy.ENDING_WEIGHTS,), _writes_on),
    RootCause(no_special_tokens.name, (Remedy.FETCH_TOKENIZER_JSON,), _answered),
    RootCause(stop_strings.name, (Remedy.TAKE_OUT_STOPWORD,), _answered),
    RootCause(None, (Remedy.LOWER_TEMPERATURE,), _answered),
    RootCause(sampling_arrives.name, SENDS, _by_sampling, _of_the_dice),
    RootCause(None, PENALTIES, _answered),
    RootCause(None, (Remedy.CLOSE_BLOCK,), _with_variables),
    RootCause(THOUGHTS, (), _thinks),
    RootCause(None, (Remedy.OTHER_VERSION_TEMPLATE,), _read),
    RootCause(None, (Remedy.ONE_TEMPLATE,), rests),
    RootCause(None, (Remedy.DECODE_ONCE_MORE,), _retold),
    RootCause(None, (Remedy.OWN_TOKENIZER,), rests),
)
# Probes that compare two stages before the answer; whatever rests on answers, and is not itself seen to break
# between two later stages, follows from the first that fails.
OBSERVERS: tuple[tuple[Stage, str, tuple[Remedy, ...]], ...] = (
    (
        Stage.TEMPLATE,
        prompt_rendered.name,
        (Remedy.IMPORT_AGAIN, Remedy.HEED_GENERATION_PROMPT, Remedy.RENDER_TEXT),
    ),
    (Stage.TEMPLATE, template_coverage.name, ()),
    (Stage.TEMPLATE, tools_in_prompt.name, ()),
    (Stage.TOKENS, tokenizer_whole.name, ()),
    (Stage.TOKENS, prompt_counts.name, ()),
    (Stage.DRAWN, prefix_cache.name, (Remedy.SOUND_CACHE,)),
    (Stage.DRAWN, likelihood.name, ()),
)


# Probes of the prompt as the engine has it, and of options, that what breaks before the engine explains.
PROMPTS = {probe.name for probe in (prompt_counts, request_options, tools_in_prompt, message_forms)}
SENDS_NOTHING = OFFLINE | {prompt_rendered.name}  # the last one with IMPORT_AGAIN
BY_ITSELF = (Remedy.OPTIONS_UNALTERED, Remedy.NO_OWN_STOPS)  # the weights answer right without a chat
UNKNOWN_VARIABLE = (Remedy.RENAME_VARIABLE,)  # the template does not know it, and something else may


def of_ability(row: ProbeRow) -> ProbeRow:
    """Return the row; what a model does not do is no fault, unless its weights are seen to be damaged.

    It excuses no probe of the contract: where such a one had nothing to compare, it does not apply.
    """
    outcome = row.outcome
    if not isinstance(outcome, Fail | Inconclusive) or outcome.attribution != "model":
        return row
    settled = isinstance(outcome, Fail) and not row.ability
    if settled or any(name in OF_WEIGHTS for name in outcome.follows):
        return row
    shows = row.ability or row.probe in OF_WEIGHTS
    return replace(row, outcome=not_shown(outcome) if shows else not_compared(outcome))


def with_a_place(row: ProbeRow, place: str) -> ProbeRow:
    """Return the row, with the place of the chat template where that is to be changed."""
    if not place or not isinstance(row.outcome, Fail) or not asks_for(row.outcome, *TEMPLATES):
        return row
    told = Reason(CommonReason.TEMPLATE_IN, place=place)
    return replace(row, outcome=replace(row.outcome, notes=(*row.outcome.notes, told)))


def traced(rows: Sequence[ProbeRow]) -> list[ProbeRow]:
    """Return the rows; failures that follow from a root cause have its attribution.

    A cause in ``ROOTS`` explains all rows that depend on answers, and ends the search. A cause in ``CAUSES``
    explains those rows that its entry selects.
    """
    rows = _of_prompts(_of_a_death(rows))
    failed = _failed(rows)
    noise = failed.get(ANSWERS)
    if noise is not None and (noise.attribution == "model" or asks_for(noise, *BY_ITSELF)):
        name = next(filter(None, (cause.shown(failed) for cause in NOISE)), ANSWERS)
        rows = [_following(row, name, failed[name]) if row.probe == ANSWERS else row for row in rows]
        failed = _failed(rows)
    for root in ROOTS:
        first = root.shown(failed)
        if first is not None:
            return [_following(row, first, failed[first]) if root.explains(row) else row for row in rows]
    traced_rows = list(rows)
    for cause in CAUSES:
        first = cause.shown(failed)
        if first is not None:
            traced_rows = [
                _following(row, first, failed[first]) if cause.explains(row) else row for row in traced_rows
            ]
    seen = _observed(failed)
    if seen is not None:
        traced_rows = [_following(row, seen, failed[seen]) if _weak(row) else row for row in traced_rows]
    lacking = next((name for name, failure in failed.items() if _lacking(failure)), None)
    if lacking is not None:
        traced_rows = [
            _following(row, lacking, failed[lacking])
            if broken(row) or _refused_alike(row, failed[lacking])
            else row
            for row in traced_rows
        ]
    return _of_the_model(traced_rows)


def _of_a_death(rows: Sequence[ProbeRow]) -> Sequence[ProbeRow]:
    """Return the rows; the death of an engine is one of them, and what was asked beside it was not asked."""
    died = next((row for row in rows if row.outcome.gives(AnswerFailure.DIED)), None)
    if died is None:
        return rows
    ended = (AnswerFailure.DIED, AnswerFailure.UNREACHABLE)
    return [
        replace(row, outcome=not_asked(died))
        if row is not died and (row.outcome.gives(*ended) or _refused_alike(row, died.outcome))
        else row
        for row in rows
    ]


def _of_the_model(rows: list[ProbeRow]) -> list[ProbeRow]:
    """Return the rows; where the model is seen to write another form, what rests on less follows from that.

    A parser that would have read one text is no remedy where no parser reads most of them.
    """
    failed = _failed(rows)
    noisy = next((name for name, failure in failed.items() if _drawn_otherwise(failure)), None)
    if noisy is None:
        return rows
    better = [row for row in rows if asks_for(row.outcome, *NAMES_PARSER)]
    fewer = len(better) < sum(_drawn_otherwise(row.outcome) for row in rows)
    return [
        _following(row, noisy, failed[noisy])
        if _weak(row) or _names_parser(row) or (fewer and row in better)
        else row
        for row in rows
    ]


def _of_prompts(rows: Sequence[ProbeRow]) -> Sequence[ProbeRow]:
    """Return the rows; where a stage breaks before the engine, its prompts and options follow from that."""
    failed = _failed(rows)
    seen = _observed({name: failure for name, failure in failed.items() if name in SENDS_NOTHING})
    variable = failed.get(prompt_rendered.name)
    if seen is None and variable is not None and asks_for(variable, *UNKNOWN_VARIABLE):
        seen = prompt_rendered.name
    started = failed.get(settings_read_back.name)
    if seen is None and started is not None and asks_for(started, Remedy.START_WITH_PARSER):
        seen = settings_read_back.name  # an engine without its parser may write calls into the prompt itself
    if seen is None:
        return rows
    return [_following(row, seen, failed[seen]) if row.probe in PROMPTS and of_engine(row) else row
            for row in rows]  # fmt: skip


def _observed(failed: Mapping[str, Fail]) -> str | None:
    """Return the first probe in ``OBSERVERS`` that fails, with one of its remedies where it names some."""
    shown = (name for _, name, remedies in OBSERVERS
             if name in failed and came(failed[name])
             and (not remedies or asks_for(failed[name], *remedies)))  # fmt: skip
    return next(shown, None)


def _failed(rows: Sequence[ProbeRow]) -> dict[str, Fail]:
    return {row.probe: row.outcome for row in rows if isinstance(row.outcome, Fail)}


def _lacking(failure: Fail) -> bool:
    """Return whether the log shows a missing part of the environment."""
    return failure.attribution == "environment" and failure.gives(AnswerFailure.LOG_LACKS)


def _refused_alike(row: ProbeRow, failure: Outcome) -> bool:
    """Return whether a request of another probe was refused with the same words."""
    return isinstance(row.outcome, Fail) and not _refusals(row.outcome).isdisjoint(_refusals(failure))


def _refusals(outcome: Outcome) -> set[str]:
    return {str(r.fields.get("says")) for r in outcome.reasons if r.kind is AnswerFailure.REFUSED}


def _drawn_otherwise(outcome: Outcome) -> bool:
    """Return whether the model is seen to write another form than that of its template."""
    broken = broken_in_answer(outcome.facts)
    return outcome.attribution == "model" and broken is not None and broken.stage is Stage.DRAWN


def _names_parser(row: ProbeRow) -> bool:
    """Return whether a parser is blamed, and no reading of it was compared."""
    return asks_for(row.outcome, *PARSERS) and first_broken(row.outcome.facts) is None


def _weak(row: ProbeRow) -> bool:
    """Return whether a verdict on answers rests on no comparison of its own behind the prompt."""
    broken = first_broken(row.outcome.facts)
    seen = broken is not None and broken.stage in (Stage.PARSED, Stage.WHOLE, Stage.STREAM)
    otherwise = isinstance(row.outcome, Fail) and asks_for(row.outcome, Remedy.OWN_TEMPLATE)
    return (rests(row) or otherwise) and not seen


def _following(row: ProbeRow, root: str, cause: Fail) -> ProbeRow:
    if not isinstance(row.outcome, Fail | Inconclusive) or row.probe == root:
        return row
    if (row.outcome.attribution, row.outcome.remedy) == (cause.attribution, cause.remedy):
        return row
    outcome = replace(
        row.outcome,
        attribution=cause.attribution,
        remedy=cause.remedy,
        follows=(*row.outcome.follows, root),
    )
    return replace(row, outcome=outcome)
