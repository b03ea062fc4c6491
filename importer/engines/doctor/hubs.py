"""Checks of the Hub: its token, and whether it answers. The token itself is never shown."""

from __future__ import annotations

import urllib.error
import urllib.request

from importer.engines.doctor.case import Case
from importer.engines.doctor.result import Fine, NotApplicable, Result, Trouble
from importer.hub import hosts

SECONDS = 5
LOGIN = "Run 'hf auth login', or set HF_TOKEN."


def token(_case: Case) -> Result:
    """Whether there is a Hub token."""
    from huggingface_hub import get_token

    try:
        known = get_token()
    except Exception:  # refreshing a saved login fails in many ways, and their words may hold the token
        return Trouble("the saved Hub login cannot be used", LOGIN, stops=False)
    if known:
        return Fine("a Hub token is set")
    return Fine("no Hub token: public repositories only; HF_TOKEN opens gated and private ones")


def valid_token(case: Case) -> Result:
    """Whether the Hub takes the token; asked only where the user says so."""
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.errors import HfHubHTTPError

    if not case.ask:
        return NotApplicable("asked with --check-token only")
    try:
        known = get_token()
        if not known:
            return Trouble("there is no Hub token to check", LOGIN, stops=False)
        from importer.hub import transport

        HfApi(endpoint=transport.check_endpoint(), token=known).whoami()
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", None)
        if status in {401, 403}:
            return Trouble("the Hub refuses the token", f"It may have expired. {LOGIN}")
        return Trouble(
            f"the Hub answered {status} when asked about the token", "Try again later.", stops=False
        )
    except Exception as error:  # their words may hold the token
        says = f"the Hub could not be asked about the token ({type(error).__name__})"
        return Trouble(says, "Check the network and HF_ENDPOINT.", stops=False)
    return Fine("the Hub takes the token")


def endpoint(_case: Case) -> Result:
    """Whether the Hub answers; no token is sent."""
    if hosts.offline():
        return NotApplicable("not asked: HF_HUB_OFFLINE is set")
    url = hosts.endpoint()
    problem, shown = _unreachable(url), hosts.plain(url)
    if problem is None:
        return Fine(f"{shown} answers")
    remedy = "Check the network and HF_ENDPOINT; directories and --offline work without."
    return Trouble(f"{shown} cannot be reached: {problem}", remedy, stops=False)


def _unreachable(url: str) -> str | None:
    if not url.startswith(("http://", "https://")):
        return "it is no http or https URL"
    try:
        request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - the scheme was checked
        with urllib.request.urlopen(request, timeout=SECONDS):  # noqa: S310
            return None
    except urllib.error.HTTPError as error:
        error.close()
        return None  # an answer is an answer
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error))
