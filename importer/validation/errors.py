"""What can go wrong in one exchange with an engine; each becomes a probe's outcome, none reaches the user.

ExchangeError
 ├── Unreachable   the connection was refused or broke
 ├── TimedOut      no whole answer within the time limit
 ├── Refused       an HTTP status that is not 2xx
 └── ReplyError    the answer is not what the OpenAI API promises
"""

from __future__ import annotations

from enum import StrEnum

from importer.messages import render
from importer.reasons import Reason
from importer.validation.outcome import Fail, Inconclusive
from importer.validation.remedy import Remedy


class AnswerFailure(StrEnum):
    """How an exchange fails, and what the log and the template tell of it."""

    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed-out"
    REFUSED = "refused"
    REPORTS_ERROR = "reports-error"
    DIED = "died"
    LOG_LACKS = "log-lacks"
    LOG_RAISED = "log-raised"
    TEMPLATE_REFUSES = "template-refuses"


class ExchangeError(Exception):
    """One exchange failed; ``reason`` says how."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return render(self.reason)

    @property
    def words(self) -> str:
        """Return the engine's and the system's own words."""
        return "\n".join(value for value in self.reason.fields.values() if isinstance(value, str))

    def outcome(self) -> Fail | Inconclusive:
        """Return what it says about the probe that met it."""
        return Fail(self.reason, "engine")


class ServerUnreachable(ExchangeError):
    """The connection was refused or broke."""


class TimedOut(ExchangeError):
    """No whole answer within the time limit."""

    def outcome(self) -> Inconclusive:
        """Slowness is the machine's until shown otherwise."""
        return Inconclusive(self.reason, "environment", Reason(Remedy.MORE_TIME))


class RequestRefused(ExchangeError):
    """The engine answered with an error status."""

    def __init__(self, status: int, says: str) -> None:
        super().__init__(Reason(AnswerFailure.REFUSED, status=status, says=says))
        self.status = status

    @property
    def broke(self) -> bool:
        """Return whether the engine blames itself."""
        return self.status >= 500

    def outcome(self) -> Fail:
        """4xx: it was not set up for this request; 5xx: it broke over it."""
        return Fail(self.reason, "engine" if self.broke else "configuration")


class TemplateRefusedError(Exception):
    """The chat template refuses a conversation, or there is none.

    ``broke`` says that it does not mean to: it raised over what it was given.
    """

    def __init__(self, reason: Reason | None = None, *, broke: bool = False) -> None:
        super().__init__("" if reason is None else render(reason))
        self.reason = reason
        self.broke = broke


class ReplyError(ExchangeError):
    """The answer is not what the OpenAI API promises."""
