"""The addresses that count as public: our own list, at the door of redirects."""

from __future__ import annotations

import ast
import socket
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import pairwise
from typing import Any

import pytest

from importer.errors import HubError
from importer.hub import endpoint
from tests.syntax import MODULES, nodes

Network = IPv4Network | IPv6Network
# iana-ipv4-special-registry, iana-ipv6-special-registry; then multicast, what is deprecated or unallocated.
SPECIAL = """
0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.0.0/29
192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24 192.31.196.0/24
192.52.193.0/24 192.88.99.0/24 192.88.99.2/32 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24
203.0.113.0/24 240.0.0.0/4 255.255.255.255/32
::1/128 ::/128 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32
2001:1::1/128 2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28
2001:30::/28 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10
224.0.0.0/4 ff00::/8
fec0::/10 ::/96 ::ffff:0:0:0/96 ::/3 4000::/2 8000::/1
"""
BLOCKS = [ip_network(text) for text in SPECIAL.split()]
PUBLIC = [
    "1.0.0.0", "1.1.1.1", "8.8.8.8", "9.255.255.255", "93.184.216.34", "100.63.255.255", "100.128.0.0",
    "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0",
    "198.17.255.255", "198.20.0.0", "223.255.255.255", "2001:200::", "2001:4860:4860::8888",
    "2001:db7:ffff::", "2001:db9::",
    "2003::", "2606:4700::1111", "2620:4f:7fff::", "2620:4f:8001::", "2a00:1450::1", "3ffe:ffff::",
    "3fff:1000::",
]  # fmt: skip
ODD = [
    "127.1", "0x7f.0.0.1", "0x7f000001", "0177.0.0.1", "2130706433", "017700000001", "127.0.0.1.", "10.1",
    "0", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "192.168.1", "[::ffff:7f00:1]",
    "[::ffff:127.0.0.1]",
    "[0:0:0:0:0:0:0:1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1::a00:1]",
    "[2002:7f00:1::]", "[fec0::1]", "[::]", "[FE80::1]", "[::FFFF:10.0.0.1]",
]  # fmt: skip
UNREADABLE = [
    "[fe80::1%25eth0]", "[fe80::1%eth0]", "[2606:4700::1111%25eth0]", "%31%32%37.0.0.1", "127%2e0.0.1",
    "１２７.0.0.1", "127。0。0。1", "①②⑦.0.0.1", "127.0.0.1\t", "127.0.0.1%00", "[::1", "::1]", "[127.0.0.1]",
]  # fmt: skip
ASKED = {"is_private", "is_global", "is_loopback", "is_link_local", "is_reserved", "is_multicast",
         "is_unspecified", "is_site_local"}  # fmt: skip


def some(block: Network) -> list[str]:
    """The first address of a block, the last one, and one in the middle."""
    return [str(block[0]), str(block[block.num_addresses // 2]), str(block[-1])]


def resolves_to(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET

    def looked_up(*_: object, **__: object) -> list[Any]:
        return [(socket.AF_INET, 1, 6, "", ("93.184.216.34", 443)), (family, 1, 6, "", (address, 443))]

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    monkeypatch.setattr(socket, "create_connection", lambda *_: pytest.fail("it was connected to"))


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_nothing_of_a_special_block_is_public(block: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    for address in some(block):
        assert not endpoint.is_public(address), address
        resolves_to(monkeypatch, address)
        with pytest.raises(HubError) as caught:
            endpoint.redirected("https://huggingface.co/a", "https://cdn-lfs.hf.co/x")
        assert caught.value.kind == "refused-host", address


@pytest.mark.parametrize("address", PUBLIC)
def test_what_lies_between_the_blocks_is_public(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    assert endpoint.is_public(address)
    assert not endpoint.is_public(f"{address}%eth0") if ":" in address else True
    resolves_to(monkeypatch, address)
    target = "https://cdn-lfs.hf.co/x"
    assert endpoint.redirected("https://huggingface.co/a", target) == target


def test_every_address_of_version_4_is_public_or_special_and_never_both() -> None:
    spans = [(int(b[0]), int(b[-1]), False) for b in BLOCKS if b.version == 4]
    spans = sorted([*spans, *((first, last, True) for first, last in endpoint.ADDRESSES_PUBLIC)])
    end, was = -1, False
    for first, last, public in spans:
        assert first == end + 1 or (first <= end and not public and not was), "a gap or an overlap"
        end, was = max(end, last), public
    assert end == 2**32 - 1


def test_every_address_of_version_6_between_two_ranges_is_special() -> None:
    blocks = [b for b in BLOCKS if b.version == 6]
    ranges = [(0, -1), *endpoint.PUBLIC_6, (2**128, 0)]
    for (_, last), (first, _) in pairwise(ranges):
        at = last + 1
        while at < first:
            at = max((int(b[-1]) for b in blocks if int(b[0]) <= at <= int(b[-1])), default=-1) + 1
            assert at, "a gap"
        assert at == first, "an overlap"


@pytest.mark.parametrize("host", UNREADABLE)
def test_a_host_that_is_neither_name_nor_address_is_refused(host: str) -> None:
    with pytest.raises(HubError):
        endpoint.redirected("https://huggingface.co/a", f"https://{host}/x")


@pytest.mark.parametrize("host", [*ODD, "127.0.0.1", "169.254.169.254", "[::1]", "93.184.216.34"])
def test_a_redirect_to_an_address_is_refused_however_it_is_spelt(host: str) -> None:
    with pytest.raises(HubError) as caught:
        endpoint.redirected("https://huggingface.co/a", f"https://{host}/x")
    assert caught.value.kind == "refused-host"


def test_loopback_is_of_two_blocks_alone() -> None:
    own = ["127.0.0.1", "127.255.255.255", "::1"]
    others = ["126.255.255.255", "128.0.0.0", "0.0.0.0", "::", "::2", "::ffff:127.0.0.1", "10.0.0.1"]
    assert [endpoint.is_this_machine(address) for address in own + others] == [True] * 3 + [False] * 7


@pytest.mark.xdist_group("syntax")
def test_no_other_module_asks_python_what_an_address_is() -> None:
    """Its answers differ between patch versions."""
    asked = [
        f"{path}:{node.lineno}"
        for path in MODULES.values()
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr in ASKED
    ]
    assert not asked
