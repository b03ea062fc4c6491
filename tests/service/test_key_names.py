"""A key's name belongs to it alone in the audit log, however it is written; the service's own are taken."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.errors import UsageError
from importer.storage import keys
from importer.storage.actors import OWN, folded
from importer.storage.audit import AuditContext
from importer.storage.database import Database
from importer.storage.keys import KeyNameReason
from tests.postgres import postgres
from tests.service.test_jobs_store import at_once
from tests.storing import ON_BOTH, database, empty

__all__ = ["database", "empty", "postgres"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
ROOT = AuditContext("root", "create key")
LIKE_LOCAL = (
    "local", "LOCAL", "Local", " local", "local ", "ｌｏｃａｌ", "𝐋𝐎𝐂𝐀𝐋", "ⓛⓞⓒⓐⓛ", "lo\u034fcal",
    "local\ufe0f", "\u3164local", "loca\U000e0100l", "ℓocal", "ᴸᴼcal",
)  # fmt: skip
LIKE_ANN = ("ann", "Ann", "ANN", "ａｎｎ", "ann ", "𝖆𝖓𝖓", "a\ufe0enn", "ⒶNN")
LIKE_STRASSE = ("straße 1", "STRASSE 1", "Strasse  1", "straſſe 1", "straẞe ①")


def made(database: Database, name: str) -> str:
    with database.writing() as connection:
        return keys.create(connection, name, ["read"], ROOT).split("_")[1]


def refused(database: Database, name: str, reason: KeyNameReason) -> None:
    with database.reading() as connection:
        before = keys.listed(connection)
    with pytest.raises(UsageError) as failure:
        made(database, name)
    assert failure.value.details["problem"].kind is reason, name
    with database.reading() as connection:
        assert keys.listed(connection) == before


def test_no_key_has_a_name_of_the_product(database: Database) -> None:
    for name in (*OWN, *LIKE_LOCAL, "Importer", "ImPoRtEr", "SCHEDULE", "Unknown  User"):
        refused(database, name, KeyNameReason.OWN)


def test_a_name_is_given_once(database: Database) -> None:
    for first, *others in (LIKE_ANN, LIKE_STRASSE, ("é", "e\u0301", "É"), ("Σας", "σασ")):
        made(database, first)
        for name in (first, *others):
            refused(database, name, KeyNameReason.TAKEN)
    made(database, "an")
    ident = made(database, "bob")
    with database.writing() as connection:  # a revoked key's entries stay in the log
        keys.revoke(connection, ident, ROOT)
    refused(database, "Bob", KeyNameReason.TAKEN)


def test_a_name_of_nothing_that_is_seen_is_refused(database: Database) -> None:
    for name in (
        "",
        " ",
        "\u3164",
        "\ufe0f\u034f",
        "two\nlines",
        "a\u200bnn",
        "\u202ebob",
        "\ud800",
        "n" * 101,
    ):
        refused(database, name, KeyNameReason.LINE)


@ON_BOTH
def test_of_many_at_once_one_has_the_name(database: Database) -> None:
    def one(number: int) -> bool:
        try:
            made(database, LIKE_ANN[number % len(LIKE_ANN)])
        except UsageError:
            return False
        return True

    assert Counter(at_once(one))[True] == 1


@given(st.text())
def test_the_form_that_is_compared_is_final(name: str) -> None:
    assert folded(folded(name)) == folded(name)
