"""Folders that are swapped for links while they are read, at each moment."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from importer import demo
from importer.engines import mlx, model_folder, token_merges, tokenizer
from importer.engines.doctor import model as doctor
from importer.engines.doctor.case import DoctorCase
from importer.errors import ImporterError, RepositoryError, ServiceError
from importer.hub import digests, local, resolve, tensor_headers
from importer.hub.local import AllowedFolders
from importer.hub.reference import parse
from importer.hub.weights import locate_weights
from importer.service.settings import Settings
from tests.tiers import one_of_each

SECRET = "verysecret"
INNER = "additional_chat_templates"
WEIGHTS = "model.safetensors"
BROKEN = "processor_config.json"  # outside alone
SIZE = 777_000  # bytes of the files outside, and their place in the list


@dataclass(frozen=True)
class Site:
    """A model that may be read, and one beside it with the same files that may not."""

    home: Path

    @property
    def model(self) -> Path:
        return self.home / "models" / "good"

    @property
    def outside(self) -> Path:
        return self.home / "outside" / "good"

    @property
    def places(self) -> AllowedFolders:
        return AllowedFolders.below([self.home / "models"])

    def marks(self) -> set[str]:
        """What only the files outside have: words, sizes and hashes."""
        files = [f for f in self.outside.rglob("*") if f.is_file()]
        texts = [f.read_bytes() for f in files]
        git = {hashlib.sha1(b"blob %d\0" % len(t) + t).hexdigest() for t in texts}
        sizes = {str(len(t)) for t in texts}
        return {SECRET, BROKEN, *git, *sizes, *(hashlib.sha256(t).hexdigest() for t in texts)}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("IMPORTER_HOME", str(tmp_path / "importer-home"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    made = Site(tmp_path)
    for folder in (made.model, made.outside):
        shutil.copytree(demo.MODEL, folder)
        (folder / INNER).mkdir()
        (folder / INNER / "tool_use.jinja").write_text("{{ messages }}")
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "chat_template": "old"}))
    (made.outside / BROKEN).write_text("{")
    head = json.dumps({SECRET: {"dtype": "U8", "shape": [SIZE], "data_offsets": [0, SIZE]}}).encode()
    (made.outside / WEIGHTS).write_bytes(len(head).to_bytes(8, "little") + head + bytes(SIZE))
    for number, file in enumerate(sorted(f for f in made.outside.rglob("*") if f.is_file())):
        if file.suffix == ".json" and file.name != BROKEN:
            data = {**json.loads(file.read_text()), "eos_token": SECRET, "architectures": [SECRET]}
            data["added_tokens"] = [{"id": 10**6, "content": f"<{SECRET}>"}]
            data |= (
                {"model": {**data["model"], "vocab": {**data["model"]["vocab"], SECRET: 9**6}}}
                if "model" in data
                else {}
            )
            file.write_text(json.dumps(data))
        if file.suffix == ".jinja":
            file.write_text("{# " + SECRET + " #}{{ messages }}")
        if file.name != WEIGHTS:
            file.write_text(file.read_text().ljust(SIZE + number))
    return made


def _snapshot(site: Site) -> Callable[[], object]:
    return lambda: resolve(parse(str(site.model)), site.places)


def _tensors(site: Site) -> Callable[[], object]:
    snapshot = local.resolve("x", site.model)
    return lambda: tensor_headers.tensors(snapshot, [WEIGHTS])


def _served(site: Site) -> Callable[[], object]:
    recorded = {"tokenizer.json": "0" * 64, f"{INNER}/tool_use.jinja": "0" * 40}
    return lambda: digests.served(site.model, recorded)


def _located(site: Site) -> Callable[[], object]:
    snapshot = local.resolve("x", site.model)
    return lambda: locate_weights(snapshot) is None or local.listing(site.model)


def _copy(site: Site) -> Callable[[], object]:
    def make() -> object:
        folder = site.home / "copies" / os.urandom(8).hex()
        try:
            copy = model_folder.dressed(site.model, "{{ messages }}", folder)
            return [f.read_text() for f in copy.iterdir() if not f.is_symlink()]
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    return make


def _doctor(site: Site) -> Callable[[], object]:
    case = DoctorCase(weights=site.model)
    checks = (doctor.snapshot, doctor.tokenizer_settings, doctor.ends, doctor.rope)
    return lambda: [case.config(), *(check(case) for check in checks)]


READERS: dict[str, Callable[[Site], Callable[[], object]]] = {
    "snapshot": _snapshot, "tensors": _tensors, "digests": _served, "weights": _located,
    "token numbers": lambda site: lambda: tokenizer.of_folder(site.model),
    "token merges": lambda site: lambda: token_merges.of_folder(site.model),
    "broken files": lambda site: lambda: model_folder.broken(site.model),
    "config": lambda site: lambda: model_folder.config_of(site.model), "a copy": _copy, "doctor": _doctor,
}  # fmt: skip
SWAPPED = {"the model": "models/good", "a folder in it": f"models/good/{INNER}", "the root": "models"}
SWAPPED |= {"a file": "models/good/config.json"}


@contextmanager
def swapped(site: Site, inside: str) -> Iterator[Callable[[], None]]:
    """Yield what swaps a part of the model for a link to its twin outside; it is put back at the end."""
    place = site.home / inside
    twin, away = site.home / inside.replace("models", "outside", 1), place.with_name(place.name + "-away")

    def swap() -> None:
        place.rename(away)
        place.symlink_to(twin)

    try:
        yield swap
    finally:
        if away.exists():
            place.unlink()
            away.rename(place)


class Moments:
    """The calls of the system in a read; ``act`` runs before the one with a number."""

    def __init__(self, number: int, act: Callable[[], None]) -> None:
        self.seen, self._number, self._act = 0, number, act

    def __call__(self, _frame: FrameType, event: str, called: Any) -> None:
        if event != "c_call" or not self._is_system(called):
            return
        self.seen += 1
        if self.seen == self._number:
            self._act()

    @staticmethod
    def _is_system(called: Any) -> bool:
        owner = type(getattr(called, "__self__", None)).__module__
        return "posix" in (getattr(called, "__module__", None), owner) or called.__name__ == "open"


def attempt(read: Callable[[], object], before: Callable[[Any, str, Any], None] | None = None) -> str:
    """Return what a read gives as text; an error of importer's own is an answer."""
    sys.setprofile(before)
    try:
        return repr(read())
    except ImporterError as error:
        return repr(error)
    finally:
        sys.setprofile(None)


@pytest.mark.slow
@pytest.mark.parametrize(("reader", "part"), one_of_each(product(READERS, SWAPPED)))
def test_no_moment_of_a_read_lets_a_link_in(site: Site, reader: str, part: str) -> None:
    """One swap before each call of the system, so that neither luck nor speed decides."""
    read, marks = READERS[reader](site), site.marks()
    moments = Moments(0, lambda: None)
    whole = attempt(read, moments)
    assert moments.seen > 3, "the calls of the system were counted"
    assert not any(mark in whole for mark in marks)
    leaks = []
    for number in range(1, moments.seen + 1):
        with swapped(site, SWAPPED[part]) as swap:
            found = attempt(read, Moments(number, swap))
        if any(mark in found for mark in marks):
            leaks.append(number)
    assert not leaks, f"{len(leaks)} of {moments.seen} moments"
    assert attempt(read) == whole


def test_a_root_that_becomes_a_link_allows_nothing_new(site: Site) -> None:
    """The operator's folders are followed at the start alone, also where another one is added."""
    settings, away = Settings(directory=[str(site.home / "models")]), site.home / "away"
    (site.home / "models").rename(away)
    (site.home / "models").symlink_to(site.home / "outside")
    for places in (settings.places, settings.places.also(site.home / "hf")):
        with pytest.raises(ServiceError) as caught:
            resolve(parse(str(site.model)), places)
        assert caught.value.kind == "no-directories"


def test_code_behind_a_link_is_not_passed_over(site: Site) -> None:
    """The server would follow the link that importer does not."""
    (site.outside / "config.json").write_text('{"model_file": "code.py"}')
    (site.model / "config.json").unlink()
    mlx.check_code({"name": "good"}, site.model, "mlx")  # there is none
    (site.model / "config.json").symlink_to(site.outside / "config.json")
    with pytest.raises(RepositoryError) as caught:
        mlx.check_code({"name": "good"}, site.model, "mlx")
    assert caught.value.kind == "unreadable"
