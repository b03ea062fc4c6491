"""``importer fill``: what a hand-written document leaves out is added, and nothing else is touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from importer.backends import NAMES
from importer.document import schema
from importer.document.build import Built, to_text
from importer.document.fill import fill
from importer.document.yaml_edit.source_map import read
from importer.errors import DocumentError
from tests.commandline import BASE, CHAT, Desk, Ran
from tests.hubserver import Repo
from tests.tiers import one_of_each
from tests.yaml_texts import texts

PLAN: dict[str, Any] = {
    "name": "planned", "backend": "vllm",
    "parameters": {"model": "acme/base", "temperature": 0.6, "top_k": 20},
    "options": ["tool_parser:hermes", "reasoning_parser:qwen3"], "max_model_len": 4096, "stopwords": ["</s>"],
    "engine_args": {"enable_prefix_caching": True, "speculative_config": {"method": "mtp"}},
    "artifacts": [{"name": "model"}],
    "importer": {"schema": 1, "reference": "acme/base", "engine": {"name": "vllm"}},
}  # fmt: skip
COMMENTS = {
    ("parameters", "top_k"): "vendor: 20",
    ("options", 1): "proved: qwen3",
    ("stopwords", 0): "vendor: </s>",
}
TEXT = to_text(Built(PLAN, COMMENTS))


def filled(text: str) -> str:
    return fill(text, read(text, "x"), TEXT, PLAN).text


def added(text: str) -> set[str]:
    return {".".join(map(str, path)) for path in fill(text, read(text, "x"), TEXT, PLAN).added}


# What is added


def test_everything_that_is_left_out_is_added_in_the_plans_order_with_its_comments() -> None:
    text = filled("name: mine\nbackend: vllm\nparameters:\n  model: acme/base  # ours\n")
    assert text == (
        "name: mine\nbackend: vllm\nparameters:\n  model: acme/base  # ours\n  temperature: 0.6\n"
        "  top_k: 20  # vendor: 20\noptions:\n- tool_parser:hermes\n- reasoning_parser:qwen3  # proved: qwen3"
        "\nmax_model_len: 4096\nstopwords:\n- </s>  # vendor: </s>\nengine_args:\n"
        "  enable_prefix_caching: true\n"
        "  speculative_config:\n    method: mtp\nartifacts:\n- name: model\nimporter:\n  schema: 1\n"
        "  reference: acme/base\n  engine:\n    name: vllm\n"
    )
    assert filled(text) == text


SET = """\
name: mine
backend: vllm
parameters: {model: acme/base, temperature: 0, top_k: null}
options:
- 'reasoning_parser:'
- --enable-prefix-caching:false
max_model_len: false
stopwords: []
engine_args:
  # none of it
  speculative_config: ''
artifacts:
importer: {}
"""


def test_what_is_set_is_set_whatever_it_is() -> None:
    """Zero, false, null, empty text, list and map; an engine's flag among the options says its value."""
    assert added(SET) == {"options.tool_parser"}
    entry = "- --enable-prefix-caching:false\n"
    assert filled(SET) == SET.replace(entry, f"{entry}- tool_parser:hermes\n")


def test_an_empty_backend_is_not_named_and_stays_empty() -> None:
    for said in ("", "''", "null"):
        text = f"name: mine\nbackend: {said}\nparameters: {{model: acme/base}}\n"
        assert filled(text).startswith(text[:-2])
        assert "backend" not in added(text)
    assert "backend" in added("name: mine\nparameters: {model: acme/base}\n")


@pytest.mark.slow
@given(texts())
def test_a_fill_only_inserts(text: str) -> None:
    try:
        done = filled(text)
    except DocumentError as error:
        problem = error
    else:
        letters = iter(done)
        assert "*n" in text or all(letter in letters for letter in text)  # an alias may be written out
        assert filled(done) == done
        return
    assert problem.kind == "cannot-edit"
    assert "|+" in text  # a literal text that keeps its end, and that the file ends with


# On the command line


def write(desk: Desk, text: str, name: str = "mine.yaml") -> Path:
    path = desk.folder / name
    path.write_bytes(text.encode())
    return path


def line(ran: Ran) -> dict[str, Any]:
    assert (ran.code, len(ran.out.splitlines())) == (0, 1), ran.err
    data = json.loads(ran.out)
    keys = "schema path name model_id revision backend added problems document"
    assert list(data) == keys.split()
    assert isinstance(data, dict)
    return data


@pytest.mark.parametrize("backend", one_of_each([None, *NAMES], tier="slow"))
def test_a_file_that_names_a_model_only_becomes_what_an_import_writes(
    desk: Desk, backend: str | None
) -> None:
    desk.hub.repos["acme/talks"] = Repo(CHAT)
    path = write(desk, "parameters:\n  model: acme/talks\n" + (f"backend: {backend}\n" if backend else ""))
    desk("fill", path.name)
    desk("acme/talks", "--name", "mine", *(("--backend", backend) if backend else ()))
    imported = read((desk.folder / "models" / "mine.yaml").read_text(), "x")
    assert read(path.read_text(), "x") == imported


def test_nothing_that_is_written_is_touched(desk: Desk) -> None:
    text = (
        "\ufeff# ours\r\nbackend:   vllm   # the card\r\n\r\n"
        "parameters: { model: acme/base, temperature: 0, top_p: }\r\nsystem_prompt: ''\r\ndtype: ~\r\n"
        "mirostat: 0\r\nbrand_new: {x: 1}\r\nmax_model_len: 100\r\n"
    )
    path = write(desk, text)
    ran = desk("fill", "mine.yaml")
    assert ran.code == 0, ran.err
    done = path.read_bytes().decode()
    letters = iter(done)
    assert all(letter in letters for letter in text)
    found = read(done, "x")
    assert found["parameters"] == {"model": "acme/base", "temperature": 0, "top_p": None}
    assert (found["name"], found["max_model_len"], found["mirostat"]) == ("mine", 100, 0)
    assert found["importer"]["revision"] == desk.hub.repos["acme/base"].sha
    before = desk.files()
    again = desk("fill", "mine.yaml")
    assert (again.code, desk.files(), again.out) == (0, before, "")
    assert "mine.yaml leaves nothing out" in again.err


def test_a_dry_run_shows_the_difference(desk: Desk) -> None:
    path = write(desk, "name: mine\nparameters:\n  model: acme/base\n")
    before = desk.files()
    ran = desk("fill", "mine.yaml", "--dry-run")
    assert (ran.code, desk.files()) == (0, before)
    assert "\n   model: acme/base\n+  temperature: 0.6  # vendor: " in ran.out
    assert not [text for text in ran.out.splitlines()[2:] if text.startswith("-")]
    told = line(desk("fill", "mine.yaml", "--dry-run", "--json"))
    entry = next(e for e in told["added"] if e["path"] == "parameters.temperature")
    assert (entry["value"], entry["why"].startswith("vendor: ")) == (0.6, True)
    assert (told["path"], told["name"], told["model_id"]) == ("mine.yaml", "mine", "acme/base")
    assert line(desk("fill", "mine.yaml", "--json"))["document"] == told["document"]
    assert read(path.read_text(), "x") == told["document"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    ["./weights", "{folder}/weights", "hf://acme/base"],
)
def test_the_model_is_a_directory_from_the_file_or_a_repository(desk: Desk, model: str) -> None:
    (desk.folder / "folder").mkdir()
    desk.directory("folder/weights", BASE)
    model = model.format(folder=desk.folder / "folder", hub=desk.hub.url)
    path = write(desk, f"name: mine\nbackend: mlx\nparameters:\n  model: {model}\n", "folder/mine.yml")
    told = line(desk("fill", "folder/mine.yml", "--json"))
    found = read(path.read_text(), "x")
    assert found["parameters"]["model"] == model
    assert told["model_id"] == ("acme/base" if "acme" in model else None)
    where = str(desk.folder / "folder" / "weights")
    assert found["importer"]["reference"] == ("acme/base" if "acme" in model else where)
    ran = desk("validate", "folder/mine.yml")  # the weights are looked for where they are meant
    assert (ran.code, "is not installed" in ran.err) == (6, True)


@pytest.mark.parametrize(
    "pin",
    [
        "importer: {{schema: 1, reference: x, model_id: acme/base, revision: {sha}, engine: {{name: vllm}}}}",
        "artifacts: [{{name: model, source: {{repo: acme/base, revision: {sha}}}}}]",
    ],
)
def test_the_commit_that_the_file_pins_is_read(desk: Desk, pin: str) -> None:
    repo = desk.hub.repos["acme/base"]
    sha = repo.sha
    repo.commit({**BASE, "generation_config.json": {"temperature": 0.9}})
    write(desk, "name: mine\nparameters: {model: acme/base}\n" + pin.format(sha=sha))
    told = line(desk("fill", "mine.yaml", "--json"))
    assert (told["revision"], told["document"]["parameters"]["temperature"]) == (sha, 0.6)


@pytest.mark.slow
def test_a_filled_file_is_reviewed_merged_and_filled_again(desk: Desk) -> None:
    (desk.folder / "models").mkdir()
    path = write(
        desk, "name: base\nparameters:\n  model: acme/base\n  top_p: 0.5  # ours\n", "models/base.yaml"
    )
    desk("fill", "models/base.yaml")
    assert desk("review", "base", "--approve").code == 0
    assert json.loads(desk("list", "--json").out)["review"] == "approved"
    repo = desk.hub.repos["acme/base"]
    repo.commit({**BASE, "generation_config.json": {"temperature": 0.7, "top_p": 0.8, "top_k": 5}})
    ran = desk("acme/base", "--json")
    assert ran.code == 0, ran.err
    sampling = read(path.read_text(), "x")["parameters"]
    assert sampling == {"model": "acme/base", "temperature": 0.7, "top_k": 5, "top_p": 0.5}
    assert "top_p: 0.5  # ours\n" in path.read_text()
    path.write_text("".join(t for t in path.read_text().splitlines(keepends=True) if "top_k" not in t))
    assert line(desk("fill", "models/base.yaml", "--json"))["added"][0]["path"] == "parameters.top_k"
    before = desk.files()
    assert desk("acme/base").code == 0
    assert desk.files() == before
    receipt = json.loads((desk.folder / "models" / "base.receipt.json").read_text())
    schema.check("receipt", receipt, "x")
    assert receipt["request"]["preferences"] == {"parameters.top_p": 0.5}


@pytest.mark.slow
def test_what_an_import_wrote_does_not_become_the_persons(desk: Desk) -> None:
    desk("acme/base")
    path = desk.folder / "models" / "base.yaml"
    path.write_text(
        path.read_text()
        .replace("top_p: 0.9 ", "top_p: 0.4 ")
        .replace("template:\n  use_tokenizer_template: true\n", "")
    )
    desk("fill", "models/base.yaml")
    desk.hub.repos["acme/base"].commit({**BASE, "generation_config.json": {"temperature": 0.7, "top_p": 0.9}})
    assert desk("acme/base").code == 0
    sampling = read(path.read_text(), "x")["parameters"]
    assert (sampling["temperature"], sampling["top_p"]) == (0.7, 0.4)


@pytest.mark.slow
def test_an_empty_backend_is_decided_and_validated_as_decided(desk: Desk) -> None:
    desk.directory("weights", {**BASE, "model.safetensors": b"", "tokenizer.json": {}})
    write(desk, "name: mine\nbackend:\nparameters:\n  model: weights\n")
    told = line(desk("fill", "mine.yaml", "--json"))
    assert told["document"]["backend"] is None
    ran = desk("validate", "mine.yaml")
    assert (ran.code, f"The engine {told['backend']}" in ran.err) == (6, True)
    assert desk("export", "mine.yaml", "localai").code == 5


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("a: [", 5, "node content"),
        ("parameters: {temperature: 0}\n", 5, "parameters: 'model' is a required property"),
        ("backend: llama-cpp\nparameters: {model: acme/base}\n", 5, "backend: 'llama-cpp' is not one of"),
        ("parameters: {model: acme/base}\nbackend: vllm\noptions: ['tool_parser:x1']\n", 2, "no tool parser"),
        ("parameters: {model: ~/no/such}\n", 2, "There is no directory"),
        ("parameters: {model: a/b/c}\n", 2, "an id is owner/name"),
        ("parameters: {model: acme/missing}\n", 3, "acme/missing is private or missing"),
        ("parameters: {model: acme/base}\nsystem_prompt: |+\n  x", 5, "cannot be edited"),
    ],
)  # fmt: skip
def test_what_cannot_be_filled_is_left_alone(desk: Desk, text: str, code: int, says: str) -> None:
    write(desk, text)
    before = desk.files()
    ran = desk("fill", "mine.yaml", "--json")
    assert (ran.code, ran.line["reference"], desk.files()) == (code, "mine.yaml", before)
    assert says in ran.line["error"]["message"]


def test_a_mistake_is_kept_and_told(desk: Desk) -> None:
    text = (
        "name: My Model\nparameters: {model: acme/base, temperature: hot, max_tokens: 0}\ntemprature: 1\n"
        "max_model_len: 0\noptions:\n- tool_parser: x\n"
    )
    path = write(desk, text)
    ran = desk("fill", "mine.yaml", "--json")
    told = line(ran)
    assert [p.split(":")[1].strip() for p in told["problems"]] == [
        "name", "parameters.temperature", "parameters.max_tokens", "temprature", "max_model_len", "options.0",
    ]  # fmt: skip
    assert "Kept, though it is a mistake: line 3: temprature" in ran.err
    found = read(path.read_text(), "x")
    assert found["parameters"] == {"model": "acme/base", "temperature": "hot", "max_tokens": 0, "top_p": 0.9}
    assert found["options"] == [{"tool_parser": "x"}]
    assert desk("review", "mine", "--approve", "--dir", ".").code == 5


def test_a_link_stays_a_link(desk: Desk) -> None:
    path = write(desk, "name: mine\nparameters: {model: acme/base}\n", "real.yaml")
    (desk.folder / "link.yaml").symlink_to(path)
    desk("fill", "link.yaml")
    assert (desk.folder / "link.yaml").is_symlink()
    assert "importer:" in path.read_text()


def test_a_file_that_changes_meanwhile_is_left_alone(desk: Desk) -> None:
    from importer.app import fill as filling
    from importer.app.import_request import ImportRequest
    from importer.app.session import ImportSession
    from importer.hub import ANYWHERE

    path = write(desk, "name: mine\nparameters: {model: acme/base}\n")
    with ImportSession() as bench:
        found = filling.plan(path, ImportRequest(""), bench, ANYWHERE)
    path.write_text("name: mine\nparameters: {model: acme/base, top_k: 1}\n")
    with pytest.raises(DocumentError, match="has changed"):
        filling.write(found)
    path.write_text("# a note meanwhile\nname: mine\nparameters: {model: acme/base}\n")
    filling.write(found)
    assert path.read_text().startswith("# a note meanwhile\nname: mine\n")
