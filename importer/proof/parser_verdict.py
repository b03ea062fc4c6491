"""The verdict on one parser, and the kinds of its reasons."""

from __future__ import annotations

from collections.abc import Mapping

from importer.frozen import frozen
from importer.reasons import Fields, Reason, ReasonKind


def _calls(number: int) -> str:
    return {0: "no call", 1: "one call"}.get(number, f"{number} calls")


class JudgeReason(ReasonKind):
    """Differences between a reading and its sample."""

    # in the parser's own words
    ERROR = "{words}"
    # caused by the machine: no verdict on the parser
    ACCIDENT = "{words}"
    OTHER_COUNT = (lambda fields: f"read {_calls(fields['read'])} where {_calls(fields['stood'])} stood",)
    NO_ANSWER = "did not return the answer as content"
    NO_REASONING = "read no reasoning"
    OTHER_REASONING = "read the reasoning {got}, not {want}"
    NO_CONTENT = "left no content"
    OTHER_CONTENT = "left the content {got}, not {want}"
    OTHER_NAME = "read the name {got}, not {want}"
    NOT_JSON = "returned arguments that are no JSON: {got}"
    NOT_AN_OBJECT = "returned arguments that are no object"
    LOST_ARGUMENT = "lost the argument {name}"
    OTHER_VALUE = "returned {name} = {got}, not {want}"
    INVENTED_ARGUMENT = "invented the argument {name}"


FIELD_TEXTS = {"tool_parser": "tool parsers", "reasoning_parser": "reasoning parsers"}


def _read_text(fields: Fields) -> str:
    who = ", ".join(fields["parsers"])
    more, vocabulary = " …" if fields["more"] else "", ", vocabulary assumed" if fields["assumed"] else ""
    if fields.get("unloaded"):
        vocabulary = f"; by its declared tokens, for its tokenizer does not load ({fields['unloaded']})"
    engine, noun = f"{fields['engine']} {fields['version']}", FIELD_TEXTS[fields["field"]]
    if not fields["count"]:
        none = f"no {noun.removesuffix('s')} of {engine} ({fields['of']} tried)"
        return f"{none} reads what the template writes{vocabulary}"
    read = f"{fields['count']} of {fields['of']} {noun} of {engine} read what the template writes"
    return f"{read}: {who}{more}{vocabulary}"


def _splits(fields: Fields) -> str:
    where = f"cut after token {fields['split']}" if fields["split"] else "token by token"
    return f"{fields['case']}: {fields['different']} of {fields['count']} splits differ, first {where}"


class ProofReason(ReasonKind):
    """Results of a proof, or reasons why there is none."""

    READ = _read_text, "{judge} {version}"
    NOT_PROVED = "not proved: {why}"
    NOTHING_RENDERED = "there was nothing to render"
    NO_CALLS = "the template renders no tool calls", "no calls rendered"
    NO_THINKING = "the template renders no reasoning", "no reasoning rendered"
    OWN_RENDERER = "{engine} renders this model by its own code ({mode}), not by a template"
    ENGINE_FAILED = "{problem}"
    CASE = "{case}: {problem}"
    WHOLE_ONLY = "whole-only ({cases:;})"
    STREAMED = "{case}: the stream is another answer than the whole"
    NOT_REPLAYED = "{case}: not replayed, {words}"
    SPLITS_DIFFER = (_splits,)
    UNREADABLE = "the receipt's proof cannot be read: import the model again"
    # of a kind that is unknown here: its text alone
    RECORDED = "{text}"


@frozen
class ParserVerdict:
    """The verdict on one parser: the passed cases, and the reasons of the failed ones.

    ``needed``     the required cases.
    ``streaming``  the difference when the output arrives in pieces, with the split.
    ``forbidden``  the place where the engine forbids the format that the parser reads.
    ``stepwise``   the cases that differ when the output arrives token by token.
    ``setting``    the template's variables in the document under which the parser reads this much.
    ``liberal``    whether the parser reads the call without its markers too.
    ``effect``     digest of everything observed: parsers of one effect cannot be told apart.
    ``unsettled``  whether a failure is on a guessed block, which refutes no parser with further markers.
    ``guessed``    whether the parser reads only where its markers are tokens, and no file declares any.
    ``default``    the cases of requests that set no variable of the template.
    """

    parser: str
    class_name: str
    passed: tuple[str, ...]
    failed: Mapping[str, Reason]
    needed: tuple[str, ...]
    streaming: Reason | None = None
    forbidden: str | None = None
    stepwise: tuple[str, ...] = ()
    setting: Mapping[str, object] | None = None
    liberal: bool = False
    effect: str = ""
    unsettled: bool = False
    guessed: bool = False
    default: tuple[str, ...] = ()

    @property
    def reads(self) -> bool:
        """Return whether the parser reads the template: every required case has passed."""
        return bool(self.needed) and not any(case in self.failed for case in self.needed)

    @property
    def lost(self) -> Mapping[str, Reason]:
        """Return the cases that the parser fails, without those that an accident kept from a verdict."""
        return {c: reason for c, reason in self.failed.items() if reason.kind is not JudgeReason.ACCIDENT}

    @property
    def reason(self) -> Reason | None:
        """Return the reason why the parser does not read the template, or ``None``."""
        return self._first(self.lost)

    @property
    def accident(self) -> Reason | None:
        """Return the reason why the parser was not judged, or ``None``."""
        return None if self.reason is not None else self._first(self.failed)

    def _first(self, failed: Mapping[str, Reason]) -> Reason | None:
        case = next((case for case in self.needed if case in failed), None)
        return None if case is None else Reason(ProofReason.CASE, case=case, problem=failed[case])

    @property
    def losses(self) -> int:
        """Return the number of cases with a difference in pieces of any size."""
        cases = () if self.streaming is None else self.streaming.fields.get("cases", ())
        return len(cases) if isinstance(cases, tuple) else 1
