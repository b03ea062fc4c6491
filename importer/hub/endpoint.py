"""The endpoint of the Hub, the hosts of redirects, and the addresses of the public internet."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import SplitResult, urljoin, urlsplit

from importer import config
from importer.errors import HubError, Setting, UsageError
from importer.reasons import Reason, ReasonKind

ADDRESSES_PUBLIC = [(int(ip_address(first)), int(ip_address(last))) for first, last in (
    ("1.0.0.0", "9.255.255.255"),
    ("11.0.0.0", "100.63.255.255"),
    ("100.128.0.0", "126.255.255.255"),
    ("128.0.0.0", "169.253.255.255"),
    ("169.255.0.0", "172.15.255.255"),
    ("172.32.0.0", "191.255.255.255"),
    ("192.0.1.0", "192.0.1.255"),
    ("192.0.3.0", "192.31.195.255"),
    ("192.31.197.0", "192.52.192.255"),
    ("192.52.194.0", "192.88.98.255"),
    ("192.88.100.0", "192.167.255.255"),
    ("192.169.0.0", "192.175.47.255"),
    ("192.175.49.0", "198.17.255.255"),
    ("198.20.0.0", "198.51.99.255"),
    ("198.51.101.0", "203.0.112.255"),
    ("203.0.114.0", "223.255.255.255"),
)]  # fmt: skip
PUBLIC_6 = [(int(ip_address(first)), int(ip_address(last))) for first, last in (
    ("2000::", "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:200::", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:db9::", "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2003::", "2620:4f:7fff:ffff:ffff:ffff:ffff:ffff"),
    ("2620:4f:8001::", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("3fff:1000::", "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
)]  # fmt: skip
OWN = (int(IPv4Address("127.0.0.0")), int(IPv4Address("127.255.255.255")))
OWN_6 = int(IPv6Address("::1"))
LINK = (int(IPv4Address("169.254.0.0")), int(IPv4Address("169.254.255.255")))
LINK_6 = (int(IPv6Address("fe80::")), int(IPv6Address("febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff")))


def is_public(address: str) -> bool:
    """Return whether an IP address is of the public internet; none with a zone (``%eth0``) is.

    Raises ValueError for a text that is no address.
    """
    one = ip_address(address)
    ranges = ADDRESSES_PUBLIC if isinstance(one, IPv4Address) else PUBLIC_6
    return "%" not in address and any(first <= int(one) <= last for first, last in ranges)


def is_link_local(address: str) -> bool:
    """Return whether an IP address is of one network segment, as clouds' metadata are.

    Raises ValueError for a text that is no address.
    """
    one = ip_address(address.partition("%")[0])
    one = getattr(one, "ipv4_mapped", None) or one
    first, last = LINK if isinstance(one, IPv4Address) else LINK_6
    return first <= int(one) <= last


def is_this_machine(address: str) -> bool:
    """Return whether an IP address is of the machine's loopback.

    Raises ValueError for a text that is no address.
    """
    one = ip_address(address)
    return OWN[0] <= int(one) <= OWN[1] if isinstance(one, IPv4Address) else int(one) == OWN_6


class RedirectRemedy(ReasonKind):
    """What to do about a redirect that is not followed, and the form of the list of hosts."""

    UNSET = "HF_ENDPOINT only points to the Hub: unset it to ask the Hub itself."
    ALLOW = "Set HF_ENDPOINT if {host} is your Hub; if your Hub keeps files there, set IMPORTER_HUB_HOSTS."
    CHECK = "Check what HF_ENDPOINT names."
    FORM = "it is a list of HOST or HOST:PORT, with commas"


PUBLIC = "https://huggingface.co"
PUBLIC_HOSTS = ("huggingface.co", "hf.co")
HOST = re.compile(r"[A-Za-z0-9._:-]+")  # other alphabets arrive as punycode
LONGEST_TARGET = 8192  # characters of a redirect's target
LONGEST_SHOWN = 300
PORTS = {"https": 443, "http": 80}


def endpoint() -> str:
    """Return ``HF_ENDPOINT``, else the public Hub; without a trailing slash."""
    return (os.environ.get("HF_ENDPOINT", "").strip() or PUBLIC).rstrip("/")


def offline() -> bool:
    """Return whether the environment forbids requests to the Hub."""
    return config.flag("HF_HUB_OFFLINE") or config.flag("TRANSFORMERS_OFFLINE")


def origin(url: str) -> tuple[str, str, int]:
    """Return scheme, lower-case host and port.

    Raises ValueError for a URL without them.
    """
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not HOST.fullmatch(parts.hostname or ""):
        raise ValueError("it is no http or https URL")
    return parts.scheme, str(parts.hostname).lower(), parts.port or PORTS[parts.scheme]


def is_hub(parts: SplitResult) -> bool:
    """Return whether a user's URL points at the public Hub or at ``HF_ENDPOINT``."""
    host, port = (parts.hostname or "").lower(), parts.port
    if host in PUBLIC_HOSTS:
        return port in {None, 80, 443}
    try:
        _, own_host, own_port = origin(endpoint())
    except ValueError:
        return False
    return host == own_host and port in {None, own_port}


def may_carry_token(url: str) -> bool:
    """Return whether a request may carry the token: to the endpoint's own host, never from https to http."""
    return _same_place(url, endpoint())


def redirected(url: str, location: str) -> str:
    """Return the target of a redirect: the endpoint itself, a host of ``IMPORTER_HUB_HOSTS`` or, for the
    public Hub, one of its own hosts.

    Raises HubError("refused-host") for every other target, and UsageError("bad-value").
    """
    target = location
    try:
        target = urljoin(url, location)
        if (
            len(target) <= LONGEST_TARGET
            and target.isprintable()
            and (_same_place(target, endpoint()) or _is_public(target) or _is_storage(target))
        ):
            return target
    except ValueError:
        pass
    raise refused(url, target)


def refused(sender: str, target: str) -> HubError:
    """Return the error of a target that is not asked, with the setting that would change that."""
    remedy, shown = Reason(RedirectRemedy.CHECK), ""
    try:
        host, own, shown = origin(target)[1], origin(endpoint())[1], plain(target)[:LONGEST_SHOWN]
        if host in PUBLIC_HOSTS and own not in PUBLIC_HOSTS:
            remedy = Reason(RedirectRemedy.UNSET)
        elif host not in PUBLIC_HOSTS and not (
            _same_place(target, endpoint()) or _spells(host, is_link_local)
        ):
            remedy = Reason(RedirectRemedy.ALLOW, host=urlsplit(target).netloc.rpartition("@")[2])
    except ValueError:
        shown = shown or target.partition("?")[0].rpartition("@")[2][:LONGEST_SHOWN]
    return HubError("refused-host", sender=plain(sender), url=shown, remedy=remedy)


def plain(url: str) -> str:
    """Return a URL for messages, without the parts that may hold secrets: user, password, query, fragment."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _same_place(url: str, home: str) -> bool:
    user = urlsplit(url).netloc.rpartition("@")[0]
    if user not in {"", urlsplit(home).netloc.rpartition("@")[0]}:  # a foreign user name is a disguise
        return False
    place, home_place = origin(url), origin(home)
    upgraded = (place[0], home_place[0]) == ("https", "http") and (place[2], home_place[2]) == (443, 80)
    return place == home_place or (upgraded and place[1] == home_place[1])


def _is_public(url: str) -> bool:
    """Return whether a URL is the public Hub's on a public address, and the public Hub is the endpoint."""
    scheme, host, port = origin(url)
    named = host in PUBLIC_HOSTS or host.endswith(tuple(f".{h}" for h in PUBLIC_HOSTS))
    endpoint_is_public = origin(endpoint())[1] in PUBLIC_HOSTS
    plain_https = scheme == "https" and port == PORTS[scheme] and "@" not in urlsplit(url).netloc
    return endpoint_is_public and named and plain_https and not _has(host, lambda one: not is_public(one))


def _is_storage(url: str) -> bool:
    """Return whether a URL is of a host that the operator lists; never one with a link-local address.

    Such an address belongs to the machine's own network, as clouds' metadata do. A redirect never leads
    from https to http.
    """
    place = origin(url)
    plain_http = place[0] == "http" and origin(endpoint())[0] == "https"
    listed = not plain_http and "@" not in urlsplit(url).netloc and place[1:] in _storage(PORTS[place[0]])
    return listed and not _has(place[1], is_link_local)


def _storage(port: int) -> set[tuple[str, int]]:
    """Return hosts and ports of ``IMPORTER_HUB_HOSTS``; ``port`` is of those that name none.

    Raises UsageError("bad-value").
    """
    named = os.environ.get("IMPORTER_HUB_HOSTS", "")
    try:
        parts = [urlsplit(f"//{one.strip()}") for one in named.split(",") if one.strip()]
        places = {(str(part.hostname).lower(), part.port or port) for part in parts}
        if all(HOST.fullmatch(part.netloc) and not part.path for part in parts):
            return places
    except ValueError:
        pass
    raise UsageError("bad-value", setting=Setting.HUB_HOSTS, value=named, problem=Reason(RedirectRemedy.FORM))


def _spells(host: str, kind: Callable[[str], bool]) -> bool:
    """Return whether a host is an address of a kind."""
    try:
        return kind(host)
    except ValueError:
        return False


def _has(host: str, kind: Callable[[str], bool]) -> bool:
    """Return whether one of a host's addresses is of a kind; unresolvable names have none."""
    import socket

    try:
        found = socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return False  # behind a proxy names need not resolve here; a failed connection is reported later
    return any(kind(str(entry[4][0])) for entry in found)
