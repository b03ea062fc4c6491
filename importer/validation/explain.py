"""The one pass over a run's rows: the earliest broken stage explains every later one that rests on it.

A cause is a failure that compares two stages itself, or names one change of the document. What judges answers
alone, and compares no stage behind the prompt, rests on each cause before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum, auto

from importer.frozen import frozen
from importer.validation import served_engine
from importer.validation.errors import AnswerFailure
from importer.validation.outcome import (
    OF_WEIGHTS,
    Fail,
    Inconclusive,
    Outcome,
    ProbeRow,
    Stage,
    asks_for,
    first_broken,
    not_compared,
    not_shown,
    note,
)
from importer.validation.probe import Rests
from importer.validation.probes import every
from importer.validation.probes.message_forms import message_forms
from importer.validation.progress import not_asked
from importer.validation.prompts import TALK
from importer.validation.remedy import NAMES_PARSER, PARSER_OF, TEMPLATES, Need, Remedy, needed
from importer.validation.tool_markup import thinking_markup

# What breaks every answer: judges of answers have no verdict of their own then.
EVERY_ANSWER = (Remedy.RAISE_LIMITS, Remedy.HEED_OPTIONS, Remedy.SEND_VALUES)
PARSERS = (*NAMES_PARSER, *PARSER_OF, Remedy.NO_PARSER_READS, Remedy.OTHER_VERSION_READS)
BEHIND = (Stage.PARSED, Stage.WHOLE, Stage.STREAM)
READ = (Stage.TEMPLATE, Stage.PROMPT, Stage.TOKENS)  # how the prompt is made
RUN = (Stage.START, Stage.PARSED)  # what an engine runs with
# Changes of the template without which an ordinary turn is lost, or another one.
TURNS = (
    Need.RENDER_EVERYTHING, Need.END_TURNS, Need.BEGIN_TURNS_ALIKE, Need.TAKE_CONVERSATION,
)  # fmt: skip
# Conversations of a template's coverage: one question, and three turns.
ORDINARY = (("bare",), (TALK.name,))
CROSSED = ("clients",)  # of several clients one got the answer of another: no other comparison holds
REFUSING = (Remedy.ASK_BY_NAME, Remedy.RAISE_BODY_LIMIT)  # requests are refused, and no answer is changed
ON_THE_WAY = (Stage.MESSAGES, Stage.GATEWAY)


class Rank(IntEnum):
    """The kinds of causes, the earliest first."""

    FILES = auto()  # other files than those of the import
    CROSSED = auto()  # one client gets the answers and counts of another
    WRITTEN = auto()  # template and tokenizer, compared without a server
    ON_THE_WAY = auto()  # what stands between client and server
    READ = auto()  # how the server reads a request
    DRAWN = auto()  # how it draws, and what cuts each answer
    CONFIGURED = auto()  # one change of the document, seen in an answer
    NOISE = auto()  # simple answers are wrong, and nothing before them is
    MODEL = auto()  # the form in which the model writes
    PARSER = auto()  # the parser in use


@frozen
class Judged:
    """A row with what its verdict rests on.

    ``stage``     the first stage that its probe has seen to break; ``None`` where it judged answers alone.
    ``rests_on``  what its verdict rests on.
    """

    row: ProbeRow
    stage: Stage | None
    rests_on: Rests

    @property
    def part(self) -> str | None:
        """Return the part at fault by the row itself."""
        return self.row.outcome.attribution

    @property
    def on_answers(self) -> bool:
        """Return whether the verdict rests on answers, or on one that did not come."""
        return self.rests_on is Rests.ANSWERS or never_came(self.row.outcome)

    @property
    def weak(self) -> bool:
        """Return whether a verdict on answers rests on no comparison of its own, and no change was tried."""
        return self.on_answers and self.stage not in (*BEHIND, Stage.START) and self.row.outcome.tried is None

    @property
    def rank(self) -> Rank | None:
        """Return the kind of cause that the failure is; ``None`` for one that explains no other."""
        failure = self.row.outcome
        if not isinstance(failure, Fail) or failure.follows or never_came(failure):
            return None
        rare = self.row.probe == message_forms.name and failure.within[:1] != ("tools",)
        bare = failure.remedy is None and self.part == "configuration"  # a refusal in a server's words
        if rare or bare or asks_for(failure, Remedy.SET_CONTEXT):
            return None  # of turns that most conversations do not have, or of long ones
        on_the_way = failure.stage is Stage.GATEWAY  # whatever the probe compares
        if self.stage is Stage.FILES or (on_the_way and failure.within[:1] == CROSSED):
            return Rank.CROSSED if on_the_way else Rank.FILES
        written = self.rests_on is Rests.NOTHING or self.part == "configuration"
        if self.stage in READ and self.rests_on is not Rests.ANSWERS:
            return Rank.WRITTEN if written else Rank.READ
        if self.stage in ON_THE_WAY or on_the_way or asks_for(failure, Remedy.NO_CAP, *REFUSING):
            return Rank.ON_THE_WAY
        if self.row.probe in OF_WEIGHTS:
            return Rank.DRAWN if self.part == "configuration" else Rank.NOISE
        if self.stage in RUN and not self.on_answers:
            return Rank.READ
        if self.part == "model":
            otherwise = self.stage is Stage.DRAWN or asks_for(failure, Remedy.DECODE_ONCE_MORE)
            return Rank.MODEL if otherwise else None
        if self.stage in (Stage.SAMPLED, Stage.DRAWN) and not failure.facts:
            other = failure.remedy is not None and failure.remedy.fields.get("option") not in (
                None,
                "temperature",
            )
            return None if other else Rank.DRAWN  # damaged weights heed no other option either
        return self._configured(failure)

    def _configured(self, failure: Fail) -> Rank | None:
        """Return the kind of a change of the document that an answer shows."""
        if self.part != "configuration" or not self.on_answers or failure.remedy is None:
            return None
        if asks_for(failure, *PARSERS):
            return Rank.PARSER
        return Rank.DRAWN if asks_for(failure, *EVERY_ANSWER) else Rank.CONFIGURED

    def explained_by(self, cause: Judged, rank: Rank) -> bool:
        """Return whether what the row has seen follows from a cause."""
        if not isinstance(self.row.outcome, Fail | Inconclusive) or self.part == "environment":
            return False
        if rank is Rank.FILES:
            return True
        if asks_for(cause.row.outcome, *REFUSING):
            return self.row.outcome.gives(AnswerFailure.REFUSED)
        if rank in (Rank.CROSSED, Rank.ON_THE_WAY):
            return self.rests_on is not Rests.NOTHING
        return self._rests_on(cause, rank)

    def _rests_on(self, cause: Judged, rank: Rank) -> bool:
        """Return whether a verdict on how a request is read, or on answers, rests on what a cause changes."""
        if cause.alters and asks_for(self.row.outcome, Remedy.OTHER_VERSION_TEMPLATE):
            return True
        if rank in (Rank.WRITTEN, Rank.READ) and cause.part == "configuration":
            read = self.rests_on is Rests.REQUESTS and self.part == "engine"
            traced = cause.stage is Stage.TOKENS and bool(self.row.outcome.facts)  # its texts are tokens
            weak = self.weak or traced
            return read or (weak and (self.row.probe not in OF_WEIGHTS or _ordinary(cause)))
        if rank is Rank.NOISE or asks_for(cause.row.outcome, *EVERY_ANSWER):
            return self.on_answers
        if rank is Rank.DRAWN and cause.row.probe in OF_WEIGHTS:
            return self.on_answers
        if rank is Rank.MODEL and self.names_parser:
            return self.stage in (None, *RUN)
        if rank is Rank.MODEL and self.row.outcome.gives(AnswerFailure.REFUSED):
            return self.weak
        if rank is Rank.PARSER:
            return self.weak and self.part == "engine" and (cause.names_parser or _quotes_thought(self.row))
        return self.weak and (rank is Rank.READ or self.part != "configuration")

    @property
    def alters(self) -> bool:
        """Return whether requests are seen to be altered, which says more than that a part is missing."""
        return asks_for(self.row.outcome, Remedy.REQUESTS_UNALTERED)

    @property
    def names_parser(self) -> bool:
        """Return whether a certain parser is the remedy."""
        return asks_for(self.row.outcome, *NAMES_PARSER, Remedy.OWN_TEMPLATE)


def judged(row: ProbeRow) -> Judged:
    """Return a row with what its verdict rests on."""
    probe = next((one for one in every() if one.name == row.probe), None)
    rests = Rests.ANSWERS if probe is None else probe.rests_on
    if row.probe == served_engine.STOPS_CLEANLY:
        rests = Rests.NOTHING
    broken, stage = first_broken(row.outcome.facts), row.outcome.stage
    if broken is not None:
        return Judged(row, broken.stage, Rests.ANSWERS)
    observes = None if probe is None else probe.observes
    if observes is None or stage is None or isinstance(row.outcome.reason.kind, AnswerFailure):
        return Judged(row, observes, rests)  # what a judge of answers takes for broken is not compared
    return Judged(row, stage, Rests.ANSWERS if stage in BEHIND else rests)  # it may judge an answer, too


def _ordinary(cause: Judged) -> bool:
    """Return whether a template fails on an ordinary conversation: simple answers rest on no other."""
    if cause.rests_on is not Rests.NOTHING or cause.stage is not Stage.TEMPLATE:
        return True
    outcome = cause.row.outcome
    return outcome.within[:1] in ORDINARY and needed(outcome.remedy, *TURNS)


def _quotes_thought(row: ProbeRow) -> bool:
    quoted = (value for reason in row.outcome.reasons for value in reason.fields.values())
    return any(isinstance(text, str) and thinking_markup(text) for text in quoted)


def explain(rows: Sequence[ProbeRow], place: str = "") -> list[ProbeRow]:
    """Return the rows; what follows from another has its part at fault and its remedy, what a model cannot do
    is no fault.

    ``place``  of the chat template, where several stand beside one another.
    """
    return [_placed(of_ability(row), place) for row in explained(rows)]


def explained(rows: Sequence[ProbeRow]) -> list[ProbeRow]:
    """Return the rows; those that a cause explains follow from it."""
    found = _of_a_death(rows)
    for rank in Rank:
        looked = [judged(row) for row in found]
        causes = [one for one in looked if one.rank is rank]
        better = [one for one in looked if one.stage in RUN and one.names_parser]
        cause = min(causes, key=lambda one: not one.alters, default=None)
        if rank is Rank.MODEL and len(causes) <= len(better):
            continue  # another parser reads most texts
        if cause is not None:
            found = [
                _following(one.row, cause.row) if one.explained_by(cause, rank) else one.row for one in looked
            ]
    return _of_surroundings(found)


def never_came(outcome: Outcome) -> bool:
    """Return whether there was no answer to judge."""
    refused = (reason for reason in outcome.reasons if reason.kind is AnswerFailure.REFUSED)
    broke = any(int(str(reason.fields["status"])) >= 500 for reason in refused)
    return broke or outcome.gives(
        AnswerFailure.UNREACHABLE, AnswerFailure.DIED, AnswerFailure.REPORTS_ERROR, AnswerFailure.NOTHING
    )


def _of_a_death(rows: Sequence[ProbeRow]) -> list[ProbeRow]:
    """Return the rows; the death of an engine is one of them, and what was asked beside it was not asked."""
    died = next((row for row in rows if row.outcome.gives(AnswerFailure.DIED)), None)
    if died is None:
        return list(rows)
    ended = (AnswerFailure.DIED, AnswerFailure.UNREACHABLE)
    return [
        replace(row, outcome=not_asked(died))
        if row is not died and (row.outcome.gives(*ended) or _refused_alike(row, died.outcome))
        else row
        for row in rows
    ]


def _of_surroundings(rows: list[ProbeRow]) -> list[ProbeRow]:
    """Return the rows; where the log shows a missing part of the environment, lost answers follow from it."""
    lacking = next((row for row in rows if row.outcome.gives(AnswerFailure.LOG_LACKS)), None)
    if lacking is None:
        return rows
    return [
        _following(row, lacking)
        if (never_came(row.outcome) or _refused_alike(row, lacking.outcome)) and isinstance(row.outcome, Fail)
        else row
        for row in rows
    ]


def _refused_alike(row: ProbeRow, failure: Outcome) -> bool:
    """Return whether a request of another probe was refused with the same words."""
    return isinstance(row.outcome, Fail) and not _refusals(row.outcome).isdisjoint(_refusals(failure))


def _refusals(outcome: Outcome) -> set[str]:
    return {str(r.fields.get("says")) for r in outcome.reasons if r.kind is AnswerFailure.REFUSED}


def _following(row: ProbeRow, cause: ProbeRow) -> ProbeRow:
    outcome, first = row.outcome, cause.outcome
    if not isinstance(outcome, Fail | Inconclusive) or row.probe == cause.probe or first.attribution is None:
        return row
    if (outcome.attribution, outcome.remedy) == (first.attribution, first.remedy):
        return row
    follows = (*outcome.follows, cause.probe)
    changed = replace(outcome, part=first.attribution, remedy=first.remedy, tried=None, follows=follows)
    return replace(row, outcome=changed)


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


def _placed(row: ProbeRow, place: str) -> ProbeRow:
    """Return the row, with the place of the chat template where that is to be changed."""
    if not place or not isinstance(row.outcome, Fail) or not asks_for(row.outcome, *TEMPLATES):
        return row
    told = note(f"the chat template in use is that of {place}")
    return replace(row, outcome=replace(row.outcome, notes=(*row.outcome.notes, told)))
