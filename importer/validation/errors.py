"""Failures of one exchange with an engine; each becomes the outcome of a probe, none reaches the user.

ExchangeError
 ├── ServerUnreachable   the connection was refused or broke
 ├── TimedOut            no whole answer within the time limit
 ├── RunOver             the run's time or bytes are spent
 ├── Overloaded          refused for load, again after each pause
 ├── RequestRefused      an HTTP status that is not 2xx
 └── ReplyError          the answer breaks the format of the OpenAI API
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self, TypeVar

from importer.reasons import Reason, ReasonKind
from importer.sentences import render
from importer.validation.outcome import Fail, Inconclusive, Stage
from importer.validation.remedy import Remedy

T = TypeVar("T")
TOO_MANY = 429
GATEWAY = (502, 504)
# Refusals of the form of a request: every probe keeps to the API, so the server does not.
OF_FORM = (405, 406, 411, 415, 422, 431)


class AnswerFailure(ReasonKind):
    """How an exchange fails, with the causes that log and template show."""

    UNREACHABLE = "the connection failed: {problem}"
    TIMED_OUT = "no whole answer within {seconds:.0f} s"
    REFUSED = "the engine answered {status}: {says}"
    OVERLOADED = "the server refuses for load, also after {seconds:.0f} s: {status}, {says}"
    REPORTS_ERROR = "the engine reports an error: {says}"
    DIED = "the engine died: {says}"
    ANSWERED_AGAIN = "sent again, the same request was answered"
    NOTHING = "HTTP 200 and nothing else: no text, no call, no token of prompt or answer"
    LOG_LACKS = "its log: {lacking}"
    LOG_RAISED = "its log: {raised}"
    TEMPLATE_REFUSES = "the chat template refuses it: {says}"


class SilenceReason(ReasonKind):
    """Why no more probes run."""

    NO_ANSWERS = "not asked: {probes} probes before it had no answer within {seconds:g} s"
    TIME_IS_UP = "not asked: the time limit of the validation is over"
    BYTES_SPENT = "not asked: the answers of the validation have {limit:,} bytes already"


class ExchangeError(Exception):
    """One exchange failed; ``reason`` has the failure."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return render(self.reason)

    @property
    def words(self) -> str:
        """Return the texts of engine and system among the fields of the reason."""
        return "\n".join(value for value in self.reason.fields.values() if isinstance(value, str))

    def outcome(self) -> Fail | Inconclusive:
        """Return the outcome of the probe that met this failure."""
        return Fail(self.reason, Stage.WHOLE)

    def bare(self) -> Self:
        """Return the failure without its frames, for these hold the answer."""
        self.__traceback__ = self.__context__ = None
        return self


def attempt(ask: Callable[[], T]) -> T | None:
    """Return what an exchange returns, ``None`` where it fails: for questions that no verdict rests on."""
    try:
        return ask()
    except ExchangeError:
        return None


class ServerUnreachable(ExchangeError):
    """The connection was refused or broke."""


class TimedOut(ExchangeError):
    """No whole answer within the time limit."""

    def outcome(self) -> Inconclusive:
        """Return an inconclusive outcome: a slow answer is attributed to the machine."""
        return Inconclusive(self.reason, Stage.MACHINE, Reason(Remedy.MORE_TIME))


class RunOver(ExchangeError):
    """The time or the bytes of the run are spent, before the exchange or within it."""

    def outcome(self) -> Inconclusive:
        """Return an inconclusive outcome without a trial."""
        return spent(self.reason)


def spent(reason: Reason) -> Inconclusive:
    """Return the outcome of a probe that the end of the run's time or bytes leaves without a verdict."""
    if reason.kind is SilenceReason.BYTES_SPENT:
        return Inconclusive(reason, Stage.WHOLE, Reason(Remedy.HEED_OPTIONS, option="max_tokens"), trials=0)
    return Inconclusive(reason, Stage.MACHINE, Reason(Remedy.MORE_TIME), trials=0)


class Overloaded(ExchangeError):
    """The server refuses for load, and went on refusing."""

    def __init__(self, status: int, message: str, seconds: float) -> None:
        super().__init__(Reason(AnswerFailure.OVERLOADED, status=status, says=message, seconds=seconds))
        self.limited = status == TOO_MANY

    def outcome(self) -> Inconclusive:
        """Return an inconclusive outcome: the request was not looked at.

        A limit of requests is the server's, or that of what stands before it; other load is its machine's.
        """
        stage = Stage.WHOLE if self.limited else Stage.MACHINE
        return Inconclusive(self.reason, stage, Reason(Remedy.LESS_LOAD))


class RequestRefused(ExchangeError):
    """The engine answered with an error status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(Reason(AnswerFailure.REFUSED, status=status, says=message))
        self.status = status

    @property
    def broke(self) -> bool:
        """Return whether the status reports an error of the server itself."""
        return self.status >= 500

    @property
    def lost(self) -> bool:
        """Return whether the status is that of a gateway that has reached no server."""
        return self.status in GATEWAY

    @property
    def limited(self) -> bool:
        """Return whether the status reports a limit of requests in a time."""
        return self.status == TOO_MANY

    def outcome(self) -> Fail:
        """Return a fault of the engine for 5xx, 429 and refusals of the form, of the configuration for other
        4xx.
        """
        if self.limited:
            return Fail(self.reason, Stage.WHOLE, Reason(Remedy.LESS_LOAD))
        if self.status in OF_FORM:
            return Fail(self.reason, Stage.WHOLE)
        return Fail(self.reason, Stage.WHOLE if self.broke else Stage.START)


class TemplateRefusedError(Exception):
    """The chat template refuses a conversation, or there is none.

    ``broke``  the template raised an error other than a deliberate refusal.
    """

    def __init__(self, reason: Reason | None = None, *, broke: bool = False) -> None:
        super().__init__("" if reason is None else render(reason))
        self.reason = reason
        self.broke = broke


class ReplyError(ExchangeError):
    """The answer breaks the format of the OpenAI API."""

    def outcome(self) -> Fail:
        """Return a fault of the engine; the remedy names the format's part."""
        return Fail(self.reason, Stage.WHOLE, Reason(Remedy.ANSWERS_UNALTERED, change=self.reason))


class StreamCut(ReplyError):
    """A stream has ended without its end."""
