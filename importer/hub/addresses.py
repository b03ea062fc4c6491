"""The addresses of the public internet: a list of ranges of importer's own, the same on every Python.

The ranges are what IANA's registries of special-purpose addresses leave of unicast:
iana-ipv4-special-registry and iana-ipv6-special-registry, both of 2025. Their entries are left out whole.
Some are reachable from everywhere: anycast of AS112, AMT, PCP and TURN is answered nearby, ORCHIDs and DRIP
are no places. IPv4 within IPv6 is left out in every form: mapped, compatible, translated, NAT64, 6to4 and
Teredo lead wherever a gateway decides. ``ipaddress`` reads an address here; its properties differ between
versions of Python.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

PUBLIC = [(int(ip_address(first)), int(ip_address(last))) for first, last in (
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


def is_public(address: str) -> bool:
    """Return whether an IP address is of the public internet; none with a zone (``%eth0``) is.

    Raises ValueError for a text that is no address.
    """
    one = ip_address(address)
    ranges = PUBLIC if isinstance(one, IPv4Address) else PUBLIC_6
    return "%" not in address and any(first <= int(one) <= last for first, last in ranges)


def is_this_machine(address: str) -> bool:
    """Return whether an IP address is of the machine's loopback.

    Raises ValueError for a text that is no address.
    """
    one = ip_address(address)
    return OWN[0] <= int(one) <= OWN[1] if isinstance(one, IPv4Address) else int(one) == OWN_6
