"""Logs: one line of JSON for each entry, with the request and the job that it belongs to; no secret in it."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

from importer import settings as places
from importer.service.settings import Settings

QUIET = ("dbos", "httpx", "httpx2", "httpcore", "httpcore2", "sqlalchemy", "uvicorn.error")
# An API key, a token of the Hub, a password in a URL: none is meant to come here, and none gets through.
SECRETS = re.compile(
    r"(?P<key>\bimp_[0-9a-f]{12}_)[\w-]{20,}|(?P<token>\bhf_)\w{8,}|(?P<user>://[^\s:/@]{0,200}:)[^\s/@]+(?=@)"
)
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
job_id: ContextVar[str | None] = ContextVar("job_id", default=None)


@contextmanager
def of_job(ident: str) -> Iterator[None]:
    """What is logged inside belongs to the job."""
    token = job_id.set(ident)
    try:
        yield
    finally:
        job_id.reset(token)


class Json(logging.Formatter):
    """One line of JSON for each entry."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, logger, message, and what is known beside it."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        said = {"at": at, "level": record.levelname.lower(), "logger": record.name}
        said |= {"message": record.getMessage(), **_ids(), **getattr(record, "said", {})}
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return without_secrets(json.dumps(said, default=str))  # ASCII: Unicode has line ends of its own


class Text(logging.Formatter):
    """The same for eyes; no entry steers a terminal or looks like two."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, logger, message; an error's lines behind it."""
        text = without_secrets(super().format(record))
        plain = "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)
        return plain if record.exc_info else plain.replace("\n", "\\n")


def _ids() -> dict[str, str]:
    ids = {"request": request_id.get(), "job": job_id.get()}
    return {name: ident for name, ident in ids.items() if ident is not None}


def without_secrets(text: str) -> str:
    """A line without what only the server and its callers may know."""
    for variable in places.TOKENS:
        if len(value := os.environ.get(variable, "").strip()) >= 8:
            text = text.replace(value, "***")
    return SECRETS.sub(lambda m: f"{m['key'] or m['token'] or m['user']}***", text)


def begin(settings: Settings) -> None:
    """Log as the settings say, to stderr."""
    handler = logging.StreamHandler()
    text = Text("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(Json() if settings.log_format == "json" else text)
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))
