"""The promises of docs/security.md that nothing of a repository runs: its code, its templates, its YAML."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from tests.commandline import Desk, desk
from tests.harming import CONFIG, TEMPLATE
from tests.hubserver import Content, Repo

__all__ = ["desk"]


# --- No code of a repository runs ---


class Payload:
    """Unpickled, it leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch '{self.mark}'",)


def with_code(mark: Path) -> dict[str, Content]:
    """A repository that brings code in every way that loaders are known to take it."""
    code = f"with open({str(mark)!r}, 'w'): pass\n"
    own = {name: f"evil.{name}" for name in ("AutoConfig", "AutoModelForCausalLM", "AutoTokenizer")}
    return {
        "config.json": {
            **CONFIG, "auto_map": own, "model_file": "evil.py", "custom_pipelines": {"x": "evil"},
        },
        "tokenizer_config.json": {
            "tokenizer_class": "evil.Tokenizer", "auto_map": {"AutoTokenizer": ["evil.Tokenizer", None]},
            "tool_parser_type": "evil", "chat_template": TEMPLATE,
        },
        "evil.py": code,
        "setup.py": code,
        "conftest.py": code,
        "handler.py": code,
        "pytorch_model.bin": pickle.dumps(Payload(mark)),
        "model.safetensors": pickle.dumps(Payload(mark)),
        "tokenizer.pkl": pickle.dumps(Payload(mark)),
    }  # fmt: skip


def test_the_payloads_would_leave_a_mark(tmp_path: Path) -> None:
    files = with_code(tmp_path / "mark")
    for name in ("pytorch_model.bin", "evil.py"):
        content = files[name]
        if isinstance(content, bytes):
            pickle.loads(content)
        else:
            exec(str(content))
        assert (tmp_path / "mark").exists()
        (tmp_path / "mark").unlink()


def test_code_on_the_hub_is_not_even_fetched(desk: Desk, tmp_path: Path) -> None:
    desk.hub.repos["a/evil"] = Repo(with_code(tmp_path / "mark"))
    assert desk("a/evil", "--yes", "--no-validate").code == 0
    asked = {path.rpartition("/")[2] for path in desk.hub.paths()[1:]}
    assert asked == {"config.json", "tokenizer_config.json"}
    assert not (tmp_path / "mark").exists()


def test_code_in_a_directory_is_not_run(desk: Desk, tmp_path: Path) -> None:
    model = desk.directory("evil", with_code(tmp_path / "mark"))
    assert desk(str(model), "--yes", "--no-validate").code == 0
    assert not (tmp_path / "mark").exists()
    document = (tmp_path / "models" / "evil.yaml").read_text(encoding="utf-8")
    assert "trust_remote_code" not in document


# --- Templates ---

ESCAPE_ATTEMPTS = (
    "{{ cycler.__init__.__globals__.os.system('touch MARK') }}",
    "{{ raise_exception.__globals__['__builtins__']['open']('MARK', 'w') }}",
    "{% for c in ''.__class__.__mro__[1].__subclasses__() %}{{ c(['touch', 'MARK']) }}{% endfor %}",
    "{{ (messages | map(attribute='__class__') | list)[0].__init__.__globals__ }}",
    "{% set f = '{0.__class__.__init__.__globals__}'.format %}{{ f(strftime_now) }}",
    "{{ self._TemplateReference__context.environment.from_string('x').module.__loader__ }}",
    "{% import '/etc/passwd' as p %}{% include '/etc/passwd' %}",
)


@pytest.mark.slow
def test_templates_do_not_leave_their_sandbox(desk: Desk, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for number, template in enumerate(ESCAPE_ATTEMPTS):
        text = template.replace("MARK", str(mark)) + TEMPLATE
        model = desk.directory(f"m{number}", {"config.json": CONFIG, "chat_template.jinja": text})
        ran = desk(str(model), "--dry-run", "--json", "--explain")
        assert ran.code == 0, ran.err
        assert "root:" not in ran.out + ran.err
        assert not mark.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "bomb",
    [
        "{% set n = namespace(s='x' * 9000) %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
        "{{ '%9000000000d' | format(1) }}",
        "{% for i in range(99999) %}{{ 'x' * 20000 }}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% for a in range(9**5) if tools %}{% for b in range(9**5) %}{% endfor %}{% endfor %}",
    ],
)
def test_a_template_bomb_costs_only_the_template(desk: Desk, tmp_path: Path, bomb: str) -> None:
    """The worker's own limits end it (seconds of processor time, memory, output); the import goes on."""
    model = desk.directory("m", {"config.json": CONFIG, "chat_template.jinja": bomb + TEMPLATE})
    ran = desk(str(model), "--dry-run", "--json", "--ignore-name", "--backend", "vllm")
    assert ran.code == 0, ran.err
    decisions = ran.line["decisions"]
    assert decisions["tool_parser"]["status"] in {"table", "unknown"}
    assert "parameters" in ran.line["document"]


# --- YAML ---


@pytest.mark.parametrize(
    "evil",
    [
        "name: !!python/object/apply:os.system ['touch MARK']",
        "name: !!python/object/new:subprocess.Popen [['touch', 'MARK']]",
        "name: !!python/name:os.system",
        "? !!python/object/apply:os.system ['touch MARK']\n: 1",
    ],
)
def test_yaml_tags_are_refused(desk: Desk, tmp_path: Path, evil: str) -> None:
    mark = tmp_path / "mark"
    desk.directory("models", {"evil.yaml": evil.replace("MARK", str(mark))})
    for words in (("show", "evil"), ("review", "evil", "--approve"), ("validate", "evil"), ("list",)):
        ran = desk(*words)
        assert "Traceback" not in ran.err
        assert ran.code == (0 if words == ("list",) else 5), (words, ran)
    assert not mark.exists()
    model = desk.directory("m", {"config.json": CONFIG})
    desk(
        str(model), "--dry-run", "--set", f"description={evil.partition(': ')[2].replace('MARK', str(mark))}"
    )
    assert not mark.exists()
