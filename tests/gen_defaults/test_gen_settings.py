"""Which variables of an engine need no approver: read from its sources, by trial and by the place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gen_defaults import settings
from importer.document import effects
from importer.document.effects import Effect

TABLE = """
import os
def chosen(name, choices):
    def read():
        if os.environ[name].lower() not in choices:
            raise ValueError(name)
    return read
def either(text):
    return int(text) if text.isdigit() else text
def fallback(name):
    try:
        return int(os.environ[name])
    except ValueError:
        return 8
environment_variables = {
    "TOY_WHOLE": lambda: bool(int(os.environ["TOY_WHOLE"])),
    "TOY_PART": lambda: float(os.environ["TOY_PART"]),
    "TOY_SWITCH": lambda: os.environ["TOY_SWITCH"].lower() in ("1", "true"),
    "TOY_FALLBACK": lambda: fallback("TOY_FALLBACK"),
    "TOY_TEXT": lambda: os.environ["TOY_TEXT"],
    "TOY_LIST": lambda: os.environ["TOY_LIST"].split(","),
    "TOY_EITHER": lambda: either(os.environ["TOY_EITHER"]),
    "TOY_WORD": chosen("TOY_WORD", ["a", "b"]),
}
"""
FIELDS = """
import os
class Field:
    def __set_name__(self, owner, name): self.name = name
    def get(self): return self.parse(os.environ[self.name])
class Text(Field):
    def parse(self, value): return value
class Whole(Field):
    def parse(self, value): return int(value)
class Envs:
    TOY_NUMBER = Whole()
    TOY_WORDS = Text()
"""


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        (TABLE, {
            "TOY_WHOLE": "int", "TOY_PART": "float", "TOY_SWITCH": "bool", "TOY_FALLBACK": "int",
            "TOY_TEXT": None, "TOY_LIST": None, "TOY_EITHER": None,
            "TOY_WORD": {"one_of": ["a", "b"], "any_case": True},
        }),
        (FIELDS, {"TOY_NUMBER": "int", "TOY_WORDS": None}),
    ],
)  # fmt: skip
def test_a_variable_whose_text_comes_through_has_no_type(source: str, kinds: dict[str, Any]) -> None:
    found = settings.tabled("toy/envs.py", source)
    assert {name: reading.kind for name, reading in found.items()} == kinds
    lines = source.splitlines()
    assert all(name in lines[int(one.place.rpartition(":")[2]) - 1] for name, one in found.items())


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("int(os.getenv('X', '1'))", "int"), ("float(os.environ['X'])", "float"),
        ("os.environ.get('X', '').strip().lower() in ('1', 'true')", "bool"),
        ("not os.environ.get('X')", "bool"), ("1 if os.getenv('X') else 2", "bool"),
        ("os.environ.get('X')", None), ("run(os.environ.get('X'))", None),
        ("os.environ.get('X').split()", None), ("os.environ['X'] + 'x'", None),
    ],
)  # fmt: skip
def test_what_an_expression_makes_of_a_variable(expression: str, kind: str | None) -> None:
    [(name, reading)] = settings.readings("a.py", f"import os\ny = {expression}\n")
    assert (name, reading.place, reading.kind) == ("X", "a.py:2", kind)


def test_one_place_that_keeps_the_text_is_enough() -> None:
    table = "import os\nenvironment_variables = {'VLLM_N': lambda: int(os.environ['VLLM_N'])}\n"
    table += "environment_variables['VLLM_B'] = lambda: int(os.environ['VLLM_B'])\n"
    sources = {"vllm/envs.py": table, "vllm/a.py": "import os\nrun(os.environ['VLLM_B'])\n"}
    review = {"named": {}, "libraries": {"OMP_X": {"type": "int", "source": "a page"}}}
    assert settings.variables("vllm", sources, review) == {
        "VLLM_N": {"type": "int", "read": "vllm/envs.py:2"}, "OMP_X": {"type": "int", "read": "a page"},
        "VLLM_B": {"type": None, "read": "vllm/envs.py:3"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "line", "effect"),
    [
        ("KVEventsConfig.new_port", "", Effect.PORT),
        ("VLLM_NEW_HOST", "", Effect.PEER),
        ("SGLANG_TEST_STUCK", "", Effect.TEST),
        ("VLLM_NEW_DIR", "", Effect.FILE),
        ("VLLM_NEW", "# A second engine listens here.", Effect.PORT),
        ("VLLM_NEW", "# The cache is unbounded and on disk", Effect.FILE),
        ("VLLM_NEW", "", Effect.UNREAD),
        ("fuse_new", "", Effect.SPEED),
    ],
)
def test_the_words_of_a_new_name_propose_an_effect(name: str, line: str, effect: Effect) -> None:
    last = name.rpartition(".")[2]
    sources = {"vllm/config/new.py": f"class Config:\n    {line}\n    {last}: int = 0\n" if line else ""}
    assert settings.proposals([name], sources) == {name: effect.value}


def test_a_proposal_is_a_grant_until_a_person_reads_the_name() -> None:
    before = (effects.FOLDER / "vllm.json").read_text()
    after = settings.with_proposals(before, {"VLLM_NEW": "speed"})
    assert json.loads(after) == {**json.loads(before), effects.PROPOSED: {"VLLM_NEW": "speed"}}
    assert {**json.loads(settings.with_proposals(before, {}))} == {**json.loads(before), effects.PROPOSED: {}}
    assert not effects.table("vllm").has("VLLM_NEW")
    unread = settings.unread("vllm", "0.33.0", '{"variables": {"VLLM_NEW": {}}, "maps": {}}')
    assert unread == ["VLLM_NEW"]
