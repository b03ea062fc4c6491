"""Checks of the Hub: its token, and whether it answers. The token itself is never shown."""

from __future__ import annotations

import urllib.error
import urllib.request

from importer.engines.doctor.case import Case
from importer.engines.doctor.kinds import DoctorReason, DoctorRemedy
from importer.engines.doctor.result import Fine, NotApplicable, Result, Trouble, TroubleSeverity
from importer.hub import hosts
from importer.reasons import Reason

SECONDS = 5


def token(_case: Case) -> Result:
    """Whether there is a Hub token."""
    from huggingface_hub import get_token

    try:
        known = get_token()
    except Exception:  # refreshing a saved login fails in many ways, and their words may hold the token
        return Trouble(Reason(DoctorReason.LOGIN_BROKEN), Reason(DoctorRemedy.LOGIN), TroubleSeverity.WARNING)
    return Fine(Reason(DoctorReason.LOGIN) if known else Reason(DoctorReason.LOGIN_NONE))


def valid_token(case: Case) -> Result:
    """Whether the Hub takes the token; asked only where the user says so."""
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.errors import HfHubHTTPError

    if not case.ask:
        return NotApplicable(Reason(DoctorReason.LOGIN_NOT_ASKED))
    try:
        known = get_token()
        if not known:
            return Trouble(
                Reason(DoctorReason.LOGIN_MISSING), Reason(DoctorRemedy.LOGIN), TroubleSeverity.WARNING
            )
        from importer.hub import transport

        HfApi(endpoint=transport.check_endpoint(), token=known).whoami()
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", None)
        if status in {401, 403}:
            return Trouble(Reason(DoctorReason.LOGIN_REFUSED), Reason(DoctorRemedy.LOGIN_AGAIN))
        answered = Reason(DoctorReason.HUB_ANSWERED, status=status)
        return Trouble(answered, Reason(DoctorRemedy.TRY_LATER), TroubleSeverity.WARNING)
    except Exception as error:  # their words may hold the token
        silent = Reason(DoctorReason.HUB_SILENT, error=type(error).__name__)
        return Trouble(silent, Reason(DoctorRemedy.CHECK_NETWORK), TroubleSeverity.WARNING)
    return Fine(Reason(DoctorReason.LOGIN_TAKEN))


def endpoint(_case: Case) -> Result:
    """Whether the Hub answers; no token is sent."""
    if hosts.offline():
        return NotApplicable(Reason(DoctorReason.HUB_OFFLINE))
    url = hosts.endpoint()
    problem, shown = _unreachable(url), hosts.plain(url)
    if problem is None:
        return Fine(Reason(DoctorReason.HUB_ANSWERS, url=shown))
    found = Reason(DoctorReason.HUB_UNREACHABLE, url=shown, problem=problem)
    return Trouble(found, Reason(DoctorRemedy.CHECK_HUB), TroubleSeverity.WARNING)


def _unreachable(url: str) -> Reason | str | None:
    if not url.startswith(("http://", "https://")):
        return Reason(DoctorReason.NOT_A_URL)
    try:
        request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - the scheme was checked
        with urllib.request.urlopen(request, timeout=SECONDS):  # noqa: S310
            return None
    except urllib.error.HTTPError as error:
        error.close()
        return None  # an answer is an answer
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error))
