"""The promises of docs/security.md on a repository's words: none becomes a flag, a path or markup."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.commandline import Desk, desk
from tests.harming import CONFIG, ESCAPES, INJECTION, calm
from tests.hubserver import Content, Repo

__all__ = ["desk"]


def hostile() -> dict[str, Content]:
    """Every string that a reader looks at, hostile."""
    return {
        "config.json": {
            "model_type": INJECTION,
            "architectures": [INJECTION, f"DeepseekOCR{INJECTION}"],
            "_name_or_path": f"../../{INJECTION}",
            "quantization_config": {"quant_method": INJECTION, "group_size": INJECTION, "bits": INJECTION},
            "torch_dtype": INJECTION,
        },
        "generation_config.json": {"temperature": INJECTION, "top_p": 0.5, "eos_token_id": INJECTION},
        "hf_quant_config.json": {"quantization": {"quant_algo": INJECTION}},
        "tokenizer_config.json": {
            "tool_parser_type": f"--help {INJECTION}", "response_template": INJECTION, "eos_token": INJECTION,
            "added_tokens_decoder": {"9" * 6000: {"content": INJECTION}, "1": {"content": ESCAPES}},
            "chat_template": f"{{{{ raise_exception({INJECTION!r}) }}}}",
        },
    }  # fmt: skip


@pytest.mark.slow
def test_a_hostile_repository_is_only_data(desk: Desk, tmp_path: Path) -> None:
    desk.hub.repos["a/b"] = Repo(
        hostile(),
        info={"tags": [INJECTION], "pipeline_tag": INJECTION, "cardData": {"base_model": INJECTION}},
    )
    for backend in ("vllm", "mlx", "vllm-mlx"):
        shown = desk("a/b", "--backend", backend, "--explain", "--dry-run")
        ran = desk("a/b", "--backend", backend, "--name", backend, "--yes", "--no-validate", "--json")
        assert (shown.code, ran.code) == (0, 0), shown.err + ran.err
        assert calm(shown.out + shown.err + ran.out + ran.err)
        document = ran.line["document"]
        text = (tmp_path / "models" / f"{backend}.yaml").read_text(encoding="utf-8")
        assert yaml.safe_load(text) == document
        assert calm(text)
        assert "injected" not in text
        assert "options" not in document
        for listing in (("show", backend), ("list",), ("show", backend, "--json"), ("list", "--json")):
            said = desk(*listing)
            assert said.code == 0
            assert calm(said.out + said.err)
    assert {p.name for p in tmp_path.iterdir()} <= {"models", "home", "hf"}


@pytest.mark.parametrize(
    "claim", ["../../x", "os", "--help", "hermes --trust-remote-code", "a\nb", "x" * 10_000]
)
@pytest.mark.parametrize("backend", ["vllm", "mlx", "mlx-vlm", "vllm-mlx"])
def test_a_declared_parser_is_one_of_the_engines_or_nothing(
    desk: Desk, tmp_path: Path, claim: str, backend: str
) -> None:
    files = {"config.json": {"model_type": "unheard-of"}, "chat_template.jinja": "{{ messages[0].content }}"}
    model = desk.directory("m", {**files, "tokenizer_config.json": {"tool_parser_type": claim}})
    ran = desk(str(model), "--dry-run", "--json", "--backend", backend)
    assert ran.code == 0, ran.err
    assert "options" not in ran.line["document"]
    assert ran.line["decisions"]["tool_parser"]["value"] is None


def test_a_gguf_repository_names_its_origin_without_steering(desk: Desk) -> None:
    desk.hub.repos["a/b"] = Repo({"x.gguf": "GGUF"}, info={"cardData": {"base_model": f"evil/{ESCAPES}name"}})
    ran = desk("a/b", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (4, "gguf-only")
    assert calm(ran.out + ran.err)


@pytest.mark.slow
def test_names_of_folders_and_files_stay_names(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("--help", "-rf", "..hidden", "a: b # c", "[/bold]", INJECTION.replace("/", "")):
        model = desk.directory(f"in/{name}", {"config.json": CONFIG})
        monkeypatch.chdir(model)
        ran = desk(".", "--dir", tmp_path / "models", "--yes", "--no-validate", "--json")
        assert ran.code == 0, ran.err
        assert ran.line["document"]["parameters"]["model"] == str(model)
        assert calm(ran.out + ran.err)
    for path in (tmp_path / "models").glob("*.yaml"):
        assert path.stem.strip("-.") == path.stem
        assert calm(path.read_text(encoding="utf-8"))
        assert str(yaml.safe_load(path.read_text(encoding="utf-8"))["name"]) == path.stem


def test_hub_ids_that_look_like_options_are_refused(desk: Desk) -> None:
    for reference in ("a/--help", "--dir/x", "a/b@--upload-pack=x", "a/b@../../x", "a/..", "hf://a/%2e%2e"):
        ran = desk("--json", "--", reference)
        assert (ran.code, ran.line["error"]["kind"]) in {(2, "bad-reference"), (2, "traversal")}, reference


def on_a_terminal(tmp_path: Path, *arguments: str) -> tuple[int, bytes]:
    """Exit code, and all that a terminal got."""
    import pty

    leader, follower = pty.openpty()
    argv = [sys.executable, "-m", "importer", *arguments]
    variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TERM": "xterm"}
    with subprocess.Popen(
        argv, stdin=follower, stdout=follower, stderr=follower, cwd=tmp_path, env=variables
    ) as process:
        os.close(follower)
        said = b""
        try:
            while piece := os.read(leader, 65536):
                said += piece
        except OSError:
            pass  # how the end of a terminal is told on Linux
        os.close(leader)
    return process.returncode, said


@pytest.mark.slow
def test_a_terminal_gets_no_escape_of_a_repository_and_no_markup(desk: Desk, tmp_path: Path) -> None:
    """On a real terminal our own colours are escapes too, so theirs are looked for by what they hold."""
    desk.directory("[/bold]", hostile())
    code, said = on_a_terminal(tmp_path, "./[/bold]", "--explain", "--dry-run")
    assert code == 0, said
    assert b"decision" in said
    assert b"[/bold]" in said
    for sequence in ("\x1b]0;", "\x1b[2J", "\x07", "\x9b", "\u202e", "\u2028", "\x85"):
        assert sequence.encode() not in said
