"""The service's settings: flags, then the environment, then a TOML file, then the defaults."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, Field, field, fields
from difflib import get_close_matches
from functools import cache, lru_cache
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from importer import backends, config
from importer.errors import ServiceError, UsageError
from importer.frozen import frozen
from importer.hub.endpoint import is_this_machine
from importer.hub.local import AllowedFolders
from importer.service import messages

if TYPE_CHECKING:
    from pydantic import TypeAdapter


PREFIX = "IMPORTER_SERVE_"
PUBLIC = re.compile(
    r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?"
)
SECRET = re.compile(r"(?<=[?&])(?:ssl)?password=[^&#]*&?", re.IGNORECASE)  # in a database's URL
HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|[0-9A-Fa-f:.]+")
LOCAL = ("localhost",)  # names that mean loopback wherever they are looked up


def _public_url(url: str) -> str | None:
    if url and not PUBLIC.fullmatch(url):
        return "it is http://HOST or https://HOST, and perhaps a path"
    return None


def _hosts(names: list[str]) -> str | None:
    odd = next((name for name in names if not HOST.fullmatch(name)), None)
    return None if odd is None else f"{odd!r} is not a host's name without scheme and port"


def _networks(texts: list[str]) -> str | None:
    """Return a problem for what is neither an address nor a network such as 10.0.0.0/8."""
    for text in texts:
        try:
            ip_network(text)
        except ValueError:
            return f"{text!r} is not an address"
    return None


def _backends(names: list[str]) -> str | None:
    odd = next((name for name in names if name not in backends.NAMES), None)
    return None if odd is None else f"{odd!r} is none of {', '.join(backends.NAMES)}"


def _size(text: str) -> str | None:
    """Return a problem for what is not an amount of memory."""
    from importer.memory import devices

    try:
        if text:
            devices.size(text)
    except UsageError as error:
        return messages.text(error.details["problem"])
    return None


def _set(default: Any, help_text: str, **limits: Any) -> Any:
    """Return a setting's field.

    ``limits``  ``least`` and ``most`` of a number, ``choices`` of a text, ``check``: what returns a problem.
                ``flags``: the commands that have an option for it (default: serve and worker).
    """
    made = {"default_factory": lambda: default} if isinstance(default, list) else {"default": default}
    return field(**made, metadata={"help": help_text, **limits})


SERVER = ("serve",)  # commands with an option for a setting of a server


@frozen
class Settings:
    """Every setting; the name in a file is the field's, the flag has hyphens, the variable is in capitals."""

    host: str = _set("127.0.0.1", "where to listen; any address but loopback needs API keys", flags=SERVER)
    port: int = _set(8080, "the port; 0 takes a free one", least=0, most=65535, flags=SERVER)
    database: str = _set("", "sqlite:///FILE or postgresql://… (default: a file in IMPORTER_HOME)")
    allowed_host: list[str] = _set(
        [], "an extra Host header to accept; repeatable", check=_hosts, flags=SERVER
    )
    public_url: str = _set(
        "",
        "how clients reach this server from elsewhere, such as https://host/importer",
        check=_public_url,
        flags=SERVER,
    )
    open_gallery: bool = _set(False, "publish entries to readers without a key", flags=SERVER)
    backend: list[str] = _set(
        [], "a backend that imports may use (default: all); with one, no question is asked", check=_backends
    )
    directory: list[str] = _set([], "a folder whose models may be imported; repeatable")
    imports: int = _set(4, "imports at a time in this process; 0 leaves them to workers", least=0, most=64)
    validate: bool = _set(True, "also validate on this machine")
    device: str = _set("", "the name of the device for validations, one at a time (default: its kind)")
    memory: str = _set(
        "", "the memory that validations may take, such as 48GiB (default: the machine's)", check=_size
    )
    largest_body: int = _set(
        2_000_000, "bytes of a request's body", least=1000, most=1_000_000_000, flags=SERVER
    )
    references: int = _set(1000, "references in one list", least=1, most=100_000, flags=SERVER)
    rate: int = _set(600, "changes per minute and caller; 0 sets no limit", least=0, flags=SERVER)
    reads: int = _set(30_000, "reads per minute and caller; 0 sets no limit", least=0, flags=SERVER)
    body_seconds: int = _set(
        30,
        "seconds that a request's head, and then its body, may take to arrive",
        least=1,
        most=3600,
        flags=SERVER,
    )
    connections: int = _set(1000, "connections at a time; further ones get 503", least=10, flags=SERVER)
    trusted_proxy: list[str] = _set(
        [],
        "an address whose X-Forwarded-For and -Proto count, such as a proxy's; repeatable",
        check=_networks,
        flags=SERVER,
    )
    previews: int = _set(4, "previews at a time", least=1, most=64)
    keep_jobs_days: int = _set(  # no command has an option for it
        90,
        "days that ended jobs are kept, with their events; 0 sets no limit",
        least=0,
        most=36_500,
        flags=(),
    )
    log_level: str = _set(
        "info", "debug, info, warning or error", choices=("debug", "info", "warning", "error")
    )
    log_format: str = _set(
        "auto", "json, text, or auto: text at a terminal", choices=("auto", "json", "text")
    )

    def __post_init__(self) -> None:
        """Follow the links of the operator's folders now, before anybody may ask for one."""
        _places(tuple(self.directory))

    @property
    def url(self) -> str:
        """Return the database's URL."""
        return self.database or f"sqlite:///{config.home() / 'service' / 'gallery.sqlite'}"

    @property
    def places(self) -> AllowedFolders:
        """Return the folders of this disk that may be read: the operator's, as at the start."""
        return _places(tuple(self.directory))

    @property
    def backends(self) -> tuple[str, ...]:
        """Return the backends that imports may be for."""
        return tuple(self.backend) or backends.NAMES

    @property
    def names(self) -> frozenset[str]:
        """Return the names that the operator gave this server, in small letters."""
        public = urlsplit(self.public_url).hostname
        return frozenset(name.lower() for name in (*self.allowed_host, public) if name)

    @property
    def loopback(self) -> bool:
        """Return whether only this machine can reach it."""
        return is_loopback(self.host)


@cache  # links in these names are followed once
def _places(folders: tuple[str, ...]) -> AllowedFolders:
    return AllowedFolders.below(folders)


@lru_cache(maxsize=64)  # every request asks for its host, and for the server's
def is_loopback(host: str) -> bool:
    """Return whether a name or an address is this machine's own."""
    try:
        return is_this_machine(host.strip("[]"))
    except ValueError:
        return host.lower() in LOCAL


def all_fields() -> Iterator[Field[Any]]:
    """Yield every setting in the order that help shows."""
    yield from fields(Settings)


def default(one: Field[Any]) -> Any:
    """Return the default of a setting."""
    return one.default_factory() if one.default_factory is not MISSING else one.default


def read(
    flags: Mapping[str, object], file: str | None, environment: Mapping[str, str] = os.environ
) -> Settings:
    """Bring all sources together; raises ServiceError("bad-setting") naming the place of a mistake."""
    variables = {f"{PREFIX}{one.name.upper()}" for one in all_fields()} | {f"{PREFIX}CONFIG"}
    for name in environment:
        if name.startswith(PREFIX):
            _known(name, variables, name)
    path = file or environment.get(f"{PREFIX}CONFIG")
    from_file = {} if path is None else _file(Path(path))
    values: dict[str, Any] = {}
    for one in all_fields():
        variable, flag = f"{PREFIX}{one.name.upper()}", f"--{one.name.replace('_', '-')}"
        offers = (
            (flag, flags.get(one.name)),
            (variable, environment.get(variable)),
            (f"{path}: {one.name}", from_file.get(one.name)),
        )
        place, raw = next(((p, v) for p, v in offers if v is not None), ("default", None))
        values[one.name] = default(one) if raw is None else _validated(one, raw, place)
    return Settings(**values)


def _file(path: Path) -> dict[str, object]:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else error
        raise ServiceError("bad-setting", place=path, problem=problem) from None
    for key in data:
        _known(key, {one.name for one in all_fields()}, f"{path}: {key}")
    return data


def _known(name: str, known: Collection[str], place: str) -> None:
    """Raise ServiceError("bad-setting") for another name than the known ones, with those near it."""
    if name not in known:
        near = get_close_matches(name, known, 1, 0.8)
        problem = f"unknown setting (did you mean {near[0]}?)" if near else "unknown setting"
        raise ServiceError("bad-setting", place=place, problem=problem)


def _validated(one: Field[Any], raw: Any, place: str) -> Any:
    """Return the value in the setting's own type and limits; a text may stand for any type."""
    from pydantic import ValidationError

    from importer.service.messages import mistake

    if isinstance(raw, str) and type(default(one)) is list:
        raw = [item.strip() for item in raw.split(",") if item.strip()]
    adapter = _adapter(one)
    try:
        value = (
            adapter.validate_strings(raw)
            if isinstance(raw, str)
            else adapter.validate_python(raw, strict=True)
        )
    except ValidationError as error:
        raise ServiceError("bad-setting", place=place, problem=mistake(error.errors()[0])) from None
    check = one.metadata.get("check")
    problem = None if check is None else check(value)
    if problem is not None:
        raise ServiceError("bad-setting", place=place, problem=problem)
    return value


def _adapter(one: Field[Any]) -> TypeAdapter[Any]:
    """Return pydantic's validator of a setting; pydantic is loaded with the first, after ``--help``."""
    from pydantic import Field as Limits
    from pydantic import TypeAdapter

    kind, choices = type(default(one)), one.metadata.get("choices")
    accepted: Any = list[str] if kind is list else kind
    if choices is not None:
        accepted = Literal[*choices]
    elif kind is int:
        accepted = Annotated[int, Limits(ge=one.metadata.get("least"), le=one.metadata.get("most"))]
    return TypeAdapter(accepted)


def without_password(url: str) -> str:
    """Return a database's URL for display."""
    head, at, tail = SECRET.sub("", url).rpartition("@")
    scheme, slashes, user = head.partition("://")
    return f"{scheme}{slashes}{user.partition(':')[0]}{at}{tail}" if at else tail
