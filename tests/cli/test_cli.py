"""The command line's contract for an import: the JSON line, and every option but --set."""

from __future__ import annotations

import json

import pytest

from importer.cli.main import run
from tests.commandline import BASE, CHAT, TOKEN, Desk, document, receipt
from tests.hubserver import Repo
from tests.template_texts import CHATML_JSON

# The line of --json


def test_the_line_of_a_hub_import(desk: Desk) -> None:
    reference = f"{desk.hub.url}/acme/chat/tree/main?x=1"
    ran = desk(reference, "--json")
    line = ran.line
    assert ran.code == 0
    assert list(line) == [
        "schema", "reference", "model_id", "revision", "name", "path", "document", "decisions", "warnings",
    ]  # fmt: skip
    assert line["reference"] == reference
    assert (line["model_id"], line["revision"]) == ("acme/chat", desk.hub.repos["acme/chat"].sha)
    assert (line["name"], line["path"]) == ("chat", "models/chat.yaml")
    assert line["document"] == document(desk, "chat")
    kept = receipt(desk, "chat")["decisions"]
    assert line["decisions"] == {
        key: {k: v for k, v in d.items() if k != "reasons"} for key, d in kept.items()
    }
    assert line["decisions"]["kind"]["value"] == "chat"
    for parser in ("tool_parser", "reasoning_parser"):
        decision = line["decisions"][parser]
        assert (decision["value"] is None) == (decision["status"] in ("none", "unknown"))
        assert decision["why"]


def test_the_line_of_a_directory(desk: Desk) -> None:
    desk.directory("My Model", BASE)
    line = desk("./My Model/", "--json").line
    assert (line["reference"], line["model_id"], line["revision"]) == ("./My Model/", None, None)
    assert (line["name"], line["path"]) == ("my-model", "models/my-model.yaml")
    assert line["document"]["parameters"]["model"] == str(desk.folder / "My Model")
    assert receipt(desk, "my-model")["directory"] == str(desk.folder / "My Model")


@pytest.mark.parametrize("text", ["模型/名", "a/\x85b", "a/\u2028b", "a/b\nc", " acme/base ", "-"])
def test_the_reference_is_verbatim_and_the_line_is_one(desk: Desk, text: str) -> None:
    ran = desk(text, "--json", "--dry-run")
    assert ran.line["reference"] == text
    assert ran.out.isascii() or ran.out.strip("\n").isprintable()


@pytest.mark.parametrize(
    ("words", "reference"),
    [
        (("--json",), None),
        (("--set", "acme/x=1", "acme/base", "--json", "--backend", "tpu"), "acme/base"),
        (("--json", "--", "-x/y"), "-x/y"),
        (("--json", "acme/base", "--name"), "acme/base"),
    ],
)
def test_the_reference_is_told_where_the_rest_makes_no_sense(
    desk: Desk, words: tuple[str, ...], reference: str | None
) -> None:
    ran = desk(*words)
    assert (ran.code, ran.line["reference"]) == (2, reference)


def test_stdout_carries_the_result_only(desk: Desk) -> None:
    ran = desk("acme/base", "--json", "--explain")
    assert ran.line["name"] == "base"
    assert "generation-config" in ran.err
    assert "Wrote models/base.yaml; review: pending." in ran.err
    plain = desk("acme/base", "--dry-run")
    assert "parameters.temperature" in plain.out
    assert "nothing was written" in plain.err
    assert "\x1b" not in plain.out + plain.err + ran.err


def test_quiet_prints_errors_alone_and_verbose_each_step(desk: Desk) -> None:
    quiet = desk("acme/base", "-q")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    assert desk("list", "-q").out
    assert "There is no document" in desk("show", "none", "-q").err
    assert "acme/base: resolving" in desk("acme/base", "-v").err
    assert "resolving" not in desk("acme/base").err
    assert desk("acme/base", "-q", "-v").code == 2


def test_quiet_and_verbose_stand_before_the_command_too(desk: Desk) -> None:
    desk("acme/base", "-q")
    assert "base" in desk("-v", "list").out
    assert desk("-q", "gallery", "check", "models").code == desk("gallery", "check", "models", "-q").code


def test_a_fault_under_verbose_has_its_traceback_its_sentence_and_its_line(desk: Desk) -> None:
    def fails(*_: object, **_options: object) -> None:
        raise ZeroDivisionError("oh")

    desk.monkeypatch.setattr("importer.hub.resolver.resolve", fails)
    assert run(["acme/base", "--json", "-v"]) == 70
    out, err = desk.capsys.readouterr()
    assert json.loads(out)["error"]["kind"] == "internal"
    assert "Traceback" in err
    assert "importer: " in err.splitlines()[-2]


# Options


def test_dry_run_writes_nothing(desk: Desk) -> None:
    desk("acme/base", "--dry-run", "--json", "--yes", "--dir", "elsewhere/deep")
    assert [p.name for p in desk.folder.iterdir() if p.name not in ("home", "hf")] == []


def test_output_and_name(desk: Desk) -> None:
    ran = desk("acme/base", "--json", "--dir", "a/b", "--name", "my_1.5")
    assert ran.line["path"] == "a/b/my_1.5.yaml"
    assert (desk.folder / ran.line["path"]).is_file()
    assert (desk.folder / "a" / "b" / ".importer" / "document.schema.json").is_file()
    first = (desk.folder / "a/b/my_1.5.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=.importer/document.schema.json"


@pytest.mark.parametrize("name", ["../x", "A", "a/b", "-", "a..b", "é", "x" * 129, ".hidden", "a\n"])
def test_names_that_are_no_file_names(desk: Desk, name: str) -> None:
    ran = desk("acme/base", f"--name={name}", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (2, "bad-value")


@pytest.mark.parametrize("backend", ["mlx-vlm", "vllm-mlx"])
def test_every_backend(desk: Desk, backend: str) -> None:
    ran = desk("acme/base", "--backend", backend, "--json")
    assert ran.code == 0, ran.err
    decision = ran.line["decisions"]["backend"]
    assert (decision["value"], decision["status"]) == (backend, "user")
    assert document(desk)["backend"] == backend
    assert "Not validated: " in ran.err


def test_revisions(desk: Desk) -> None:
    repo = desk.hub.repos["acme/base"]
    first = repo.sha
    second = repo.commit({**BASE, "generation_config.json": {"temperature": 0}}, "v2")
    for words, commit in (
        (("acme/base",), first),
        (("acme/base@v2",), second),
        (("acme/base", "--revision", "v2"), second),
        (("acme/base@v2", "--revision", "v2"), second),
        ((f"acme/base@{second}",), second),
        (("hf://acme/base@v2",), second),
        ((f"{desk.hub.url}/acme/base/blob/v2/config.json",), second),
    ):
        assert desk(*words, "--dry-run", "--json").line["revision"] == commit
    assert desk("acme/base@v2", "--dry-run", "--json").line["document"]["parameters"]["temperature"] == 0


def test_the_card_is_heard_after_the_file_and_hidden_with_the_name(desk: Desk) -> None:
    desk.directory(
        "thing", BASE | {"README.md": "# Thing\nWe recommend `temperature=1.1` and `min_p=0.02`.\n"}
    )
    told = desk("./thing", "--dry-run", "--json").line["decisions"]
    assert (told["parameters.min_p"]["value"], told["parameters.min_p"]["status"]) == (0.02, "vendor")
    assert told["parameters.temperature"]["value"] == 0.6
    assert [o["source"] for o in told["parameters.temperature"]["overruled"]] == ["README.md"]
    explained = desk("./thing", "--dry-run", "--explain")
    assert "We recommend temperature=1.1 and min_p=0.02." in explained.err
    hidden = desk("./thing", "--dry-run", "--json", "--ignore-name").line["decisions"]
    assert "parameters.min_p" not in hidden


def test_engine_version(desk: Desk) -> None:
    line = desk("acme/chat", "--engine-version", "0.14.1", "--dry-run", "--json").line
    assert line["document"]["importer"]["engine"] == {"name": "vllm", "version": "0.14.1"}
    ran = desk("acme/chat", "--engine-version", "0.14.1", "--set", "tool_parser=gemma4", "--json")
    assert ran.line["error"]["kind"] == "unknown-parser"
    assert desk("acme/chat", "--engine-version", "99", "--json").line["error"]["kind"] == "bad-value"


def test_offline_uses_what_was_fetched(desk: Desk) -> None:
    first = desk("acme/base", "--dry-run", "--json").line
    asked = desk.hub.asked
    assert desk("acme/base", "--dry-run", "--json", "--offline").line == first
    desk.monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert desk("acme/base", "--dry-run", "--json").line == first
    assert desk.hub.asked == asked


def test_the_token_opens_what_it_may(desk: Desk) -> None:
    desk.hub.repos["acme/hidden"] = Repo(BASE, private=True, readers=(TOKEN,))
    desk.monkeypatch.setenv("HF_TOKEN", TOKEN)
    ran = desk("acme/hidden", "--json")
    assert ran.line["model_id"] == "acme/hidden"
    assert TOKEN not in ran.out + ran.err
    assert not any(TOKEN.encode() in data for data in desk.files().values())


def test_ignore_name(desk: Desk) -> None:
    files = {**CHAT, "config.json": {"_name_or_path": "Qwen/Qwen3-8B"}}
    desk.hub.repos["Qwen/Qwen3-8B"] = Repo(files, info={"tags": ["base_model:Qwen/Qwen3-8B-Base"]})
    named = desk("Qwen/Qwen3-8B", "--dry-run", "--json").line["decisions"]
    hidden = desk("Qwen/Qwen3-8B", "--dry-run", "--json", "--ignore-name").line["decisions"]
    assert (named["tool_parser"]["value"], named["tool_parser"]["status"]) == ("hermes", "table")
    assert hidden["tool_parser"]["value"] is None
    assert "qwen" not in json.dumps(hidden).lower()


def test_words_of_a_repository_do_not_steer_a_terminal(desk: Desk) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202e"
    files = {"config.json": {"model_type": evil, "architectures": [f"Llama{evil}ForCausalLM"]}}
    desk.hub.repos["acme/odd"] = Repo({**files, "chat_template.jinja": f"{evil}{{{{ messages }}}}"})
    for words in (["--explain"], ["--json"], ["--yes"]):
        ran = desk("acme/odd", *words)
        assert ran.code == 0, ran.err
        assert not [c for c in ran.out + ran.err if not (c.isprintable() or c == "\n")]
    for command in ("show", "review"):
        assert not [c for c in desk(command, "odd").out if not (c.isprintable() or c == "\n")]


def heavy(size: int) -> Repo:
    return Repo({**BASE, "model.safetensors": b"\0" * size, "tokenizer.json": {}})


@pytest.mark.slow
def test_what_validate_would_fetch_is_told(desk: Desk) -> None:
    desk.hub.repos["acme/heavy"] = heavy(6_000_000)
    desk.engine()
    ran = desk("acme/heavy", "--backend", "mlx")
    assert "--validate would fetch weights of 0.01 GB" in ran.err
    assert not any("safetensors" in path for path in desk.hub.paths())


def test_an_engine_that_is_missing_is_told_before_anything_is_fetched(desk: Desk) -> None:
    desk.hub.repos["acme/heavy"] = heavy(1000)
    ran = desk("acme/heavy", "--backend", "mlx", "--validate", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (6, "engine-missing")
    assert not any("safetensors" in path for path in desk.hub.paths())
    assert document(desk, "heavy")


def test_an_engine_that_nobody_knows_is_told_before_anything_is_written(desk: Desk) -> None:
    assert desk("acme/base", "--validate=llama").code == 6
    assert desk.files() == {}


def test_a_bare_validate_does_not_swallow_the_reference(desk: Desk) -> None:
    assert desk("--validate", "acme/base", "--json").line["reference"] == "acme/base"


def test_kinds_that_are_not_served(desk: Desk) -> None:
    desk.hub.repos["acme/ears"] = Repo(
        {"config.json": {"architectures": ["ParlerTTSForConditionalGeneration"]}}
    )
    ran = desk("acme/ears", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (4, "not-chat")
    assert desk("acme/ears", "--json", "--set", "kind=chat", "--dry-run").code == 0


def test_turns_that_a_template_refuses_are_worth_knowing(desk: Desk) -> None:
    """No warning: the model was trained so, and clients have to know."""
    model = desk.folder / "strict"
    model.mkdir()
    (model / "config.json").write_text('{"architectures": ["LlamaForCausalLM"], "model_type": "llama"}')
    one = "{% if m.role == 'system' and not loop.first %}{{ raise_exception('one only') }}{% endif %}"
    text = f"{{% for m in messages %}}{one}{{% endfor %}}{CHATML_JSON}"
    (model / "chat_template.jinja").write_text(text)
    ran = desk(model, "--backend", "vllm", "--dry-run")
    assert "worth knowing: in the chat template a second system turn" in ran.out
    assert "is refused: one only" in ran.out
    assert "system turn" not in ran.err
