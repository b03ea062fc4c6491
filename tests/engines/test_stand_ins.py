"""Sources of an engine without the rest of it: what may stand in, and what raises."""

from __future__ import annotations

import importlib
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from importer.engines.parser_worker import stand_ins, wire
from importer.engines.parser_worker.stand_ins import Parts, StandIn, StandInUsed

SOURCES = {
    "toyengine/__init__.py": "",
    "toyengine/parsers/__init__.py": "",
    "toyengine/parsers/plain.py": """
        import heavy_of_cards
        from heavy_of_cards.nn import Module
        from toyengine.config import Config, lent, shared
        from toyengine.kernels import quick
        from toyengine.parsers.other_requests import Request

        @quick
        def doubled(text: str | Config) -> str:
            return text * 2

        class Parser(Module):
            limit: Config | None = None

            def read(self, text: str) -> str:
                return lent(text)

            def read_on_a_card(self, text: str) -> str:
                try:
                    return quick(text)
                except Exception:
                    return "swallowed"

            def ask(self) -> bool:
                return bool(Config.enabled)

            def is_other(self) -> bool:
                return isinstance(self, Request)

            def walk(self) -> list[object]:
                return [*heavy_of_cards.devices]

            def given(self) -> int:
                return shared
        """,
    "toyengine/parsers/other_requests.py": "raise SystemExit('it takes long to import')",
    "toyengine/config.py": """
        import heavy_of_cards
        CARDS = heavy_of_cards.cuda.device_count() + 1  # cannot be imported without it

        def lent(text):
            return _helper(text)

        def _helper(text):
            return f"lent {text}"
        """,
}
PARTS = Parts(
    "toyengine",
    re.compile(r"toyengine(\.parsers(\..*)?)?"),
    "toyengine/parsers/plain.py",
    ("heavy_of_cards",),
    borrowed=("toyengine.config.lent",),
    idle=("toyengine.parsers.other_requests",),
    given=lambda root: {"toyengine.config.shared": len(list(root.rglob("*.py")))},
)


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[object]:
    for path, text in SOURCES.items():
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(textwrap.dedent(text))
    before = [*sys.meta_path]
    stand_ins.install(PARTS, tmp_path)
    yield importlib.import_module("toyengine.parsers.plain")
    sys.meta_path[:] = before
    for name in [n for n in sys.modules if n.partition(".")[0] in ("toyengine", "heavy_of_cards")]:
        del sys.modules[name]


def test_what_is_needed_to_import_may_stand_in(plain: object) -> None:
    """As a decorator, a base class, an annotation; a function is borrowed, a value given."""
    parser = plain.Parser()  # type: ignore[attr-defined]
    assert plain.doubled("ab") == "abab"  # type: ignore[attr-defined]
    assert parser.read("text") == "lent text"
    assert parser.given() == len(SOURCES)
    assert parser.is_other() is False
    assert "toyengine.config" in sys.modules
    assert isinstance(plain.Config, StandIn)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("method", "arguments", "name"),
    [("read_on_a_card", ("x",), "toyengine.kernels.quick"), ("ask", (), "toyengine.config.Config.enabled"),
     ("walk", (), "heavy_of_cards.devices")],
)  # fmt: skip
def test_a_stand_in_that_is_used_raises_and_nobody_swallows_it(
    plain: object, method: str, arguments: tuple[str, ...], name: str
) -> None:
    parser = plain.Parser()  # type: ignore[attr-defined]
    with pytest.raises(StandInUsed) as used:
        getattr(parser, method)(*arguments)
    assert used.value.name == name
    assert not isinstance(used.value, Exception)
    item = wire.attempt(5.0, lambda: getattr(parser, method)(*arguments))
    assert item == {"error": {"kind": "absent", "words": name}}


def test_the_parts_of_a_wheel_are_named_by_their_modules() -> None:
    wanted = [path for path in (*SOURCES, "toyengine/kernels.py", "toyengine/parsers/data.json", "other/a.py")
              if PARTS.wants(path)]  # fmt: skip
    assert wanted == [*SOURCES]
