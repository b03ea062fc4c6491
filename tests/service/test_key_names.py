"""A key's name belongs to it alone in the audit log; the service's own are taken."""

from __future__ import annotations

from collections import Counter

import pytest

from importer.errors import UsageError
from importer.storage import keys
from importer.storage.actors import OWN
from importer.storage.audit import AuditContext
from importer.storage.database import Database
from importer.storage.keys import KeyNameReason
from tests.service.test_jobs_store import at_once
from tests.storing import ON_BOTH, database, empty

__all__ = ["database", "empty"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
ROOT = AuditContext("root", "create key")


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
    for name in (*OWN, "LOCAL", "ImPoRtEr", "Unknown User"):
        refused(database, name, KeyNameReason.OWN)


def test_a_name_is_given_once(database: Database) -> None:
    ident = made(database, "Ann of CI-2 ann@example.org")
    with database.writing() as connection:  # a revoked key's entries stay in the log
        keys.revoke(connection, ident, ROOT)
    refused(database, "ann of ci-2 ann@example.org", KeyNameReason.TAKEN)
    made(database, "ann")


def test_no_two_names_look_alike(database: Database) -> None:
    """Letters of other alphabets, invisible characters and spaces that count twice are refused."""
    for name in (
        "", " ", " ann", "ann ", "a  b", "two\nlines", "a\u200bnn", "ａｎｎ", "𝖆𝖓𝖓", "аnn", "é", "\ud800",
        "lo\u034fcal", "\u3164local", "n" * 101,
    ):  # fmt: skip
        refused(database, name, KeyNameReason.FORM)


@ON_BOTH
def test_of_many_at_once_one_has_the_name(database: Database) -> None:
    def one(number: int) -> bool:
        try:
            made(database, ("ann", "Ann", "ANN")[number % 3])
        except UsageError:
            return False
        return True

    assert Counter(at_once(one))[True] == 1
