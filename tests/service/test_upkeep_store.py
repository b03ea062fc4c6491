"""Findings, schedules and deliveries as rows, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import update

from importer.service.domain import upkeep
from importer.service.domain.upkeep import begin_due
from importer.service.domain.webhooks import Sender
from importer.service.settings import Settings
from importer.storage import documents, findings, jobs, processes, retention, tables, webhooks
from importer.storage.database import Database
from importer.storage.findings import FindingFilter
from importer.storage.webhooks import EACH, LEASE, PAUSES, TRIES, Delivery, Webhook
from tests.receiving import receiving
from tests.service.test_jobs_store import at_once, database, empty, postgres
from tests.service.test_retention import with_versions
from tests.storing import ON_BOTH

__all__ = ["database", "empty", "postgres"]
NOW = datetime.now(UTC).isoformat(timespec="seconds")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
SUMMARY: dict[str, Any] = {
    "model": "acme/base", "causes": [], "decisions": [], "document": [], "conflicts": [], "refused": None,
}  # fmt: skip


def recorded(database: Database, name: str, mark: str, version: int = 1) -> tuple[str | None, str]:
    with database.writing() as connection:
        return findings.record(
            connection, name, version, mark, ["commit", "weights"], SUMMARY, {"any": {"text": "é" * 9}}, "job"
        )


def open_ones(database: Database, **filters: Any) -> list[str]:
    with database.reading() as connection:
        return [one.id for one in findings.page(connection, FindingFilter(("open",), **filters), 99)]


def test_a_finding_is_shown_once_and_a_rejected_one_stays_so(database: Database) -> None:
    first, outcome = recorded(database, "a", "one")
    assert outcome == "found"
    assert recorded(database, "a", "one", 2) == (first, "known")
    assert first is not None
    with database.writing() as connection:
        refreshed = findings.get(connection, first)
        assert refreshed is not None
        assert refreshed.version == 2
        assert findings.proposals(connection, first) == {"any": {"text": "é" * 9}}
        assert findings.decide(connection, first, "rejected", "ann", "no")
        assert not findings.decide(connection, first, "accepted", "ann", None)
    assert recorded(database, "a", "one", 3) == (first, "rejected")
    assert open_ones(database) == []
    second, _ = recorded(database, "a", "two")
    third, _ = recorded(database, "a", "three")
    assert open_ones(database, name="a", cause="weights") == [third]
    assert open_ones(database, cause="weight") == []
    assert recorded(database, "a", "one") == (first, "rejected")  # the change of before is back
    assert open_ones(database) == []
    with database.writing() as connection:
        assert findings.count(connection, FindingFilter(("superseded",))) == 2
        findings.resolve(connection, "a")
        assert findings.purge(connection, "2999-01-01T00:00:00+00:00") == 2
        assert [one.state for one in findings.page(connection, FindingFilter(), 9)] == ["rejected"]
        assert findings.get(connection, str(second)) is None


def test_one_of_many_processes_begins_what_is_due(database: Database) -> None:
    with database.writing() as connection:
        row = {"name": "doc", "version": 1, "digest": "d", "state": "draft", "review": "draft", "search": ""}
        row |= {"validation": "never", "created_at": "x", "updated_at": "x"}
        connection.execute(tables.configs.insert().values(row))
    every = 3600
    assert not any(at_once(lambda _: begin_due(database, every)))  # the first one is not due at once
    with database.reading() as connection:
        planned = processes.last(connection, upkeep.SCHEDULE)
    assert planned is not None
    assert 0.9 * every - 60 < float(str(planned["due"])) - time.time() <= 1.1 * every
    _make_due(database)
    assert at_once(lambda _: begin_due(database, every)).count(True) == 1
    _make_due(database)
    assert not any(at_once(lambda _: begin_due(database, every)))  # the last one has not ended
    with database.reading() as connection:
        [job] = jobs.newest(connection, "recheck", 9)
        assert findings.waiting(connection, job.id, 9) == ["doc"]


def _make_due(database: Database) -> None:
    with database.writing() as connection:
        connection.execute(update(tables.schedules).values(due=0.0))


def hook(database: Database, url: str = "https://a.example/") -> str:
    with database.writing() as connection:
        return webhooks.create(connection, url, ["job.failed", "webhook.disabled"], "s", "ann", None).id


def queued(database: Database, number: int) -> None:
    with database.writing() as connection:
        for _ in range(number):
            webhooks.enqueue(connection, "job.failed", {"job": "x"})


def sent(database: Database, limit: int = 9) -> list[Delivery]:
    return [delivery for _, delivery in leased(database, limit)]


def leased(database: Database, limit: int = 9) -> list[tuple[Webhook, Delivery]]:
    with database.writing() as connection:
        return webhooks.claim(connection, limit)


def waited(database: Database) -> None:
    """The pauses of all webhooks and deliveries are over."""
    with database.writing() as connection:
        connection.execute(
            update(tables.deliveries).where(tables.deliveries.c.state == "waiting").values(due=0.0)
        )
        connection.execute(update(tables.webhooks).values(retry_at=0.0))


@ON_BOTH
def test_an_event_is_leased_by_one_process_and_comes_back_where_that_dies(database: Database) -> None:
    hooks = [hook(database) for _ in range(3)]
    queued(database, 1)
    found = [one for taken in at_once(lambda _: sent(database)) for one in taken]
    assert sorted(one.webhook for one in found) == sorted(hooks)
    assert sent(database) == []
    with database.writing() as connection:  # the lease of a process that died
        connection.execute(update(tables.deliveries).values(due=tables.deliveries.c.due - LEASE - 1))
    again = sent(database)
    assert sorted(one.id for one in again) == sorted(one.id for one in found)
    assert {one.tries for one in again} == {2}


def test_one_delivery_at_a_time_is_tried_where_a_webhook_fails(database: Database) -> None:
    ident = hook(database)
    queued(database, 3)
    first = leased(database)
    assert len(first) == 3
    for one, delivery in first:
        with database.writing() as connection:
            assert not webhooks.failed(connection, one, delivery, 500, None)
            known = webhooks.get(connection, ident)
            assert known.failures == 1  # three that fail side by side are one failure
            assert known.retry_at - time.time() > PAUSES[0] - 60
    queued(database, 1)
    assert sent(database) == []  # a new event waits, too
    tries: list[str] = []
    for count in range(2, TRIES + 1):
        waited(database)
        [(one, delivery)] = leased(database)
        assert sent(database) == []  # another process does not try it at the same time
        tries.append(delivery.id)
        with database.writing() as connection:
            disabled = webhooks.failed(connection, one, delivery, 500, None)
        assert disabled is (count == TRIES)
    assert len({*tries}) == 4  # each had its turn
    queued(database, 1)
    with database.writing() as connection:
        assert webhooks.states(connection, ident) == {"waiting": 4}  # nothing is queued for a disabled one
        webhooks.change(connection, ident, {"state": "enabled"})
    assert len(sent(database)) == 4


def test_a_busy_webhook_leaves_threads_to_the_others(database: Database) -> None:
    busy, other = hook(database), hook(database)
    queued(database, 30)
    found = Counter(one.webhook for one in sent(database))
    assert found == {busy: EACH, other: EACH}
    with database.writing() as connection:
        more = webhooks.claim(connection, 9, {busy: EACH})
    assert {one.webhook for _, one in more} == {other}


def test_events_arrive_one_after_another_and_after_an_outage_all_at_once(database: Database) -> None:
    with receiving() as receiver:
        ident = hook(database, receiver.url)
        sender = Sender(database, private=True)
        queued(database, 30)
        _drained(sender)
        assert len({one["id"] for one in receiver.received}) == 30
        receiver.status = 503
        queued(database, 20)
        _drained(sender)
        tried = len(receiver.received)
        assert 30 < tried <= 30 + 2 * EACH  # those under way when the first one failed
        for _ in range(15):  # a busy minute: not one of its events is tried in the pause
            queued(database, 1)
            _drained(sender)
        with database.reading() as connection:
            assert webhooks.get(connection, ident).failures == 1
        assert len(receiver.received) == tried
        waited(database)
        _drained(sender)
        assert len(receiver.received) == tried + 1
        receiver.status = 204
        waited(database)
        _drained(sender)
        sender.close()
    with database.reading() as connection:
        assert webhooks.states(connection, ident) == {"delivered": 65}


def _drained(sender: Sender) -> None:
    while sender.run():
        pass


def test_a_delivery_that_one_receiver_refuses_is_given_up_alone(database: Database) -> None:
    ident = hook(database)
    queued(database, 1)
    for _ in range(TRIES):
        waited(database)
        [(one, delivery)] = leased(database)
        with database.writing() as connection:
            webhooks.failed(connection, one, delivery, 400, None)
            connection.execute(update(tables.webhooks).values(failures=0))  # others arrive meanwhile
    with database.writing() as connection:
        assert webhooks.states(connection, ident) == {"failed": 1}
        assert webhooks.purge(connection, "2999-01-01T00:00:00+00:00") == 1


def test_a_receiver_that_is_gone_disables_its_webhook(database: Database) -> None:
    other, ident = hook(database), hook(database)
    queued(database, 1)
    one, delivery = next(pair for pair in leased(database) if pair[0].id == ident)
    with database.writing() as connection:
        assert webhooks.failed(connection, one, delivery, 410, None, gone=True)
        assert webhooks.get(connection, ident).state == "disabled"
        assert [d.type for d in webhooks.log(connection, other, 9)] == ["webhook.disabled", "job.failed"]


def test_what_was_kept_long_enough_is_deleted(database: Database) -> None:
    with_versions(database, "served", 1)
    with_versions(database, "gone", 2)
    with database.writing() as connection:
        changed = update(tables.configs).where(tables.configs.c.name == "gone")
        connection.execute(changed.values(deleted_at=NOW))
    ident, _ = recorded(database, "served", "one")
    with database.writing() as connection:
        job = upkeep.ask(connection, ["served"], {}, "ann")
        findings.decide(connection, str(ident), "accepted", "ann", None)
    forever = Settings(keep_deleted_days=0, keep_findings_days=0, keep_deliveries_days=0)
    for settings in (forever, Settings()):
        retention.run(database, settings.limits)
        with database.reading() as connection:
            assert [one["name"] for one in documents.page_deleted(connection, 9)] == ["gone"]
            assert findings.get(connection, str(ident)) is not None
    with database.writing() as connection:
        connection.execute(changed.values(deleted_at="2020"))
        connection.execute(update(tables.findings).values(decided_at="2020"))
        connection.execute(tables.jobs.delete().where(tables.jobs.c.id == job.id))
    retention.run(database, Settings().limits)
    with database.reading() as connection:
        assert documents.count_deleted(connection) == 0
        assert documents.history(connection, "gone") == []
        assert documents.history(connection, "served") != []
        assert findings.get(connection, str(ident)) is None
        assert findings.items(connection, job.id, 9) == []
