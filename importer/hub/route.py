"""The way to the Hub that the environment sets: the session, its proxy and certificate authorities."""

from __future__ import annotations

import os
import ssl
from typing import Any
from urllib.parse import urlsplit

from importer.errors import HubError
from importer.frozen import frozen
from importer.hub import endpoint
from importer.reasons import Reason, ReasonKind

PROXIES = ("http", "https", "all")  # the names of urllib for the variables that the HTTP library reads
AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")  # the HTTP library reads the first one that is set, no other
PROXY_SIGN_IN = 407
UNREACHED = {"ConnectError", "ConnectTimeout", "ProxyError"}


class RouteReason(ReasonKind):
    """Reasons why the way to the Hub is closed before the Hub."""

    PROXY_ADDRESS = "its address is malformed"
    PROXY_SOCKS = "a SOCKS proxy needs the package socksio"
    PROXY_STATUS = "it answered with status {status}"
    NOT_TRUSTED = "{says}"
    UNREADABLE = "the file cannot be used ({says})"
    VARIABLE = "{name}={value}"
    OWN = "the default ones"


@frozen
class Proxy:
    """The proxy of a URL: the variable that names it, and its address without user and password."""

    variable: str
    address: str


def proxy_of(url: str) -> Proxy | None:
    """Return the proxy that a request to a URL goes through, by the rules of urllib; ``None`` without one."""
    from urllib.request import getproxies, proxy_bypass

    parts, known = urlsplit(url), getproxies()
    if not known or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return next((_proxy(name, known[name]) for name in (parts.scheme, "all") if known.get(name)), None)


def _proxy(name: str, address: str) -> Proxy:
    spellings = (f"{name}_proxy", f"{name.upper()}_PROXY")
    variable = next((one for one in spellings if os.environ.get(one)), "the system's settings")
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        shown = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
    except ValueError:  # a password may stand where the port belongs
        shown = "(malformed)"
    return Proxy(variable, shown)


def authorities() -> Reason:
    """Return where the certificates of the trusted authorities come from."""
    named = next((name for name in AUTHORITIES if os.environ.get(name)), None)
    if named is None:
        return Reason(RouteReason.OWN)
    return Reason(RouteReason.VARIABLE, name=named, value=os.environ[named])


def open_session() -> Any:
    """Return the Hub client's HTTP session; proxies and authorities are read when it is made.

    Raises HubError (proxy, certificate) for a variable that the HTTP library refuses.
    """
    from huggingface_hub import get_session

    try:
        return get_session()
    except OSError as error:  # of SSL_CERT_FILE: no such file, or no certificates in it
        problem = Reason(RouteReason.UNREADABLE, says=error.strerror or type(error).__name__)
        raise _untrusted(endpoint.endpoint(), problem) from None
    except ImportError:
        reason = Reason(RouteReason.PROXY_SOCKS)
    except Exception:  # the HTTP library's own errors of malformed URLs; their text may hold a password
        reason = Reason(RouteReason.PROXY_ADDRESS)
    from urllib.request import getproxies

    known = getproxies()
    first = next((_proxy(name, known[name]) for name in PROXIES if known.get(name)), None)
    raise _closed(proxy_of(endpoint.endpoint()) or first or Proxy("?", "?"), endpoint.endpoint(), reason)


def route_closed(url: str, error: Exception, problem: Reason) -> HubError | None:
    """Return the failure of a request that ended at a proxy or a certificate; else ``None``."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _untrusted(url, Reason(RouteReason.NOT_TRUSTED, says=cause.verify_message))
        cause = cause.__cause__ or cause.__context__
    proxy = proxy_of(url) if type(error).__name__ in UNREACHED else None
    return None if proxy is None else _closed(proxy, url, problem)


def route_refused(url: str, status: int) -> HubError | None:
    """Return the failure of a status that proxies alone answer with; ``None`` without a proxy."""
    proxy = proxy_of(url) if status == PROXY_SIGN_IN else None
    return None if proxy is None else _closed(proxy, url, Reason(RouteReason.PROXY_STATUS, status=status))


def _closed(proxy: Proxy, url: str, problem: Reason) -> HubError:
    host = urlsplit(url).hostname
    return HubError("proxy", proxy=proxy.address, variable=proxy.variable, host=host, problem=problem)


def _untrusted(url: str, problem: Reason) -> HubError:
    host = urlsplit(url).hostname
    return HubError("certificate", host=host, problem=problem, authorities=authorities())
