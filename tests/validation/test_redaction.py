"""Secrets in what a server sends: wherever the network cuts it, whatever form they have."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from importer.validation.client import CUT, redacted, secrets_of, without
from tests.validation.test_validation_reply import cut

KEY = "sk-secret/of the-test"
SECRETS = secrets_of([KEY])


@given(st.text(max_size=30), st.text(max_size=30), st.lists(st.integers(0, 200), max_size=12))
def test_a_secret_is_cut_out_wherever_the_network_cuts_it(before: str, after: str, places: list[int]) -> None:
    sent = f"{before}{KEY}{after}{KEY}".encode()
    arrived = b"".join(redacted(cut(sent, places), SECRETS))
    assert KEY.encode() not in arrived
    assert b"sk-secret/of" not in arrived


@given(st.binary(max_size=60), st.lists(st.integers(0, 200), max_size=12))
def test_what_holds_no_secret_arrives_as_it_was(sent: bytes, places: list[int]) -> None:
    assert b"".join(redacted(cut(sent, places), SECRETS)) == sent


def test_a_chunk_that_begins_no_secret_does_not_wait() -> None:
    chunks = redacted(iter([b"data: 1\n\n", b"data: sk-se", b"at\n\n"]), SECRETS)
    assert list(chunks) == [b"data: 1\n\n", b"data: ", b"sk-seat\n\n"]


def test_a_secret_has_parts_and_forms() -> None:
    assert secrets_of(["Bearer abcdefgh", None, ""]) == ("Bearer abcdefgh", "abcdefgh")
    assert secrets_of(["1", "abcdefg"]) == ()
    quoted = 'a"secret/value'
    for sent in (quoted, json.dumps({"echo": quoted}), json.dumps(quoted).replace("/", "\\/")):
        assert "secret" not in without(sent, secrets_of([quoted]))
    assert without(KEY, SECRETS) == CUT
