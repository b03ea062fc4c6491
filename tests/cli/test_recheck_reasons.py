"""Recheck after another engine, machine, table or code, and with an engine's own parsers."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import pytest

from importer.engines import machine, registries
from importer.engines.install import Installed
from importer.memory import devices
from importer.signals import tables
from tests.commandline import BASE, CHAT, Desk, receipt
from tests.hubserver import Repo
from tests.rechecking import WARM, imported, lines, one
from tests.template_texts import CHATML_JSON, XML_PARAMETERS

pytestmark = pytest.mark.slow
# Other weights


def weights(last: bytes) -> dict[str, object]:
    """A model with one file of weights without tensors, which ends with some bytes."""
    return {**CHAT, "model.safetensors": b"\x02" + bytes(7) + b"{}" + last}


def test_weights_with_other_hashes_at_the_same_commit(desk: Desk) -> None:
    desk.hub.repos["acme/heavy"] = Repo(weights(b""))
    imported(desk, "acme/heavy")
    assert one(desk, 0)["causes"] == []
    path = desk.folder / "models" / "heavy.receipt.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "content": f"sha256:{'0' * 64}"}))
    line = one(desk, 1)
    assert [(c["what"], c["files"]) for c in line["causes"]] == [("weights", ["model.safetensors"])]
    assert line["causes"][0]["before"] == line["causes"][0]["after"]
    assert "heavy: its weights are others" in desk("recheck").out


# Another engine


def test_a_parser_that_the_new_version_lacks(desk: Desk) -> None:
    desk.hub.repos["acme/old"] = Repo({**CHAT, "config.json": {"model_type": "llama"}})
    row = tables.TableRow("old", {"tool_parser": "minimax"}, source="x")
    desk.monkeypatch.setattr(tables, "stand_in", lambda: tables.Table((row,)))
    desk.monkeypatch.setitem(registries.PINNED, "vllm", "0.14.1")
    imported(desk, "acme/old")
    imported(desk, "acme/chat", "--set", "tool_parser=minimax")
    imported(
        desk, "acme/chat", "--engine-version", "0.14.1", "--name", "pinned", "--set", "tool_parser=minimax"
    )
    desk.monkeypatch.setitem(registries.PINNED, "vllm", "0.32.0")
    ran = desk("recheck", "--json")
    found = lines(ran)
    assert ran.code == 1
    assert found["old"]["decisions"][0]["before"] == "minimax"
    assert found["old"]["decisions"][0]["why"] == ["vllm 0.32.0 has no tool parser named minimax"]
    gone = {"what": "parsers", "before": "minimax", "after": None, "keys": ["tool_parser"]}
    assert gone in found["old"]["causes"]
    assert found["chat"]["causes"] == [gone]
    refused = found["chat"]["refused"]
    assert (refused["kind"], found["chat"]["changed"]) == ("unknown-parser", True)
    assert "vllm 0.32.0 has no tool parser named 'minimax'" in refused["message"]
    assert found["pinned"]["changed"] is False
    assert (
        "chat: it would not be imported again.\n  vllm 0.32.0 has no tool parser"
        in desk("recheck", "chat").out
    )


def test_an_engine_that_was_installed_in_another_version(desk: Desk) -> None:
    desk.engine(version="0.31.3")
    imported(desk, "acme/base", "--backend", "mlx")
    metadata = next((desk.folder / "site").glob("*.dist-info"))
    metadata.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: mlx-lm\nVersion: 0.32.2\n")
    line = one(desk, 1)
    assert line["causes"] == [{"what": "engine", "before": "0.31.3", "after": "0.32.2"}]
    assert (line["decisions"], [c["path"] for c in line["document"]]) == ([], ["importer.engine.version"])
    assert "again: importer acme/base\n" in desk("recheck").out  # the backend is remembered


SIZES = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "max_position_embeddings": 131072,
    "hidden_size": 1024, "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 8,
    "vocab_size": 32000, "intermediate_size": 4096, "torch_dtype": "bfloat16",
}  # fmt: skip


def test_a_machine_with_less_memory(desk: Desk) -> None:
    def has(gib: int) -> None:
        found = devices.of_kind("cpu", "this machine", gib * 2**30)
        desk.monkeypatch.setattr(machine, "this_machine", lambda *_, **__: found)

    desk.hub.repos["acme/sized"] = Repo({**BASE, "config.json": SIZES})
    has(64)
    imported(desk, "acme/sized", "--device", "this-machine")
    imported(desk, "acme/sized", "--memory", "64GB", "--name", "named")
    assert desk("recheck").code == 0
    has(4)
    found = lines(desk("recheck", "--json"))
    assert (found["named"]["changed"], found["sized"]["changed"]) == (False, True)
    [cause] = found["sized"]["causes"]
    had, has_now = "1 × this machine with 64.0 GiB", "1 × this machine with 4.0 GiB"
    assert cause == {"what": "device", "before": had, "after": has_now}
    length = next(d for d in found["sized"]["decisions"] if d["key"] == "max_model_len")
    assert 0 < length["after"] < length["before"] == 131072
    assert length["why"]
    desk.hub.repos["acme/sized"].commit({**WARM, "config.json": SIZES})
    again = desk("recheck", "named").out.splitlines()[-1].removeprefix("  again: ")
    assert desk(*shlex.split(again)[1:], "--no-validate").code == 0
    assert receipt(desk, "named")["request"]["memory"] == 64 * 10**9
    assert desk("recheck", "named").code == 0


# Other tables, other code


def other_table(desk: Desk) -> None:
    """From now on the families that had hermes have qwen3_xml."""
    rows = [
        replace(row, parsers={**row.parsers, "tool_parser": "qwen3_xml"})
        if row.parsers.get("tool_parser") == "hermes"
        else row
        for row in tables.shipped().rows
    ]
    desk.monkeypatch.setattr(tables, "stand_in", lambda: tables.Table(tuple(rows)))


def test_a_table_that_says_otherwise(desk: Desk) -> None:
    desk.hub.repos["Qwen/Qwen3-8B"] = Repo(CHAT)
    imported(desk, "Qwen/Qwen3-8B")
    other_table(desk)
    line = one(desk, 1)
    assert line["causes"] == [{"what": "tables", "before": None, "after": None, "keys": ["tool_parser"]}]
    [found] = line["decisions"]
    assert (found["key"], found["before"], found["after"]) == ("tool_parser", "hermes", "qwen3_xml")
    assert found["why"] == ['parser_defaults.json now says "qwen3_xml"; it said "hermes"']


def test_an_edit_of_options_covers_the_key_that_was_edited(desk: Desk) -> None:
    desk.hub.repos["Qwen/Qwen3-8B"] = Repo(CHAT)
    imported(desk, "Qwen/Qwen3-8B")
    other_table(desk)
    path = desk.folder / "models" / "qwen3-8b.yaml"
    said = path.read_text()
    [tool, reasoning] = [n for n in said.splitlines() if n.startswith("- ") and "_parser:" in n]
    path.write_text(said.replace(f"{tool}\n{reasoning}\n", f"{reasoning}\n{tool}\n"))
    assert [d["covered"] for d in one(desk, 1)["decisions"]] == [False]
    path.write_text(said.replace(tool, "- tool_parser:mine"))
    [found] = one(desk, 1)["decisions"]
    assert (found["covered"], found["yours"]) == (True, "mine")


def test_code_that_weighs_otherwise(desk: Desk) -> None:
    imported(desk, "acme/base")
    path = desk.folder / "models" / "base.receipt.json"
    data = json.loads(path.read_text()) | {"importer": "0.0.1"}
    data["decisions"]["parameters.temperature"]["value"] = 0.9
    path.write_text(json.dumps(data))
    line = one(desk, 1)
    assert line["causes"][0]["what"] == "importer"
    assert "weighs the same evidence otherwise than 0.0.1 did" in line["decisions"][0]["why"][0]


# With an engine's own parsers


@pytest.mark.engine
def test_a_template_that_the_parser_no_longer_reads(desk: Desk, mlx_engine: Installed) -> None:
    """Decided by proof, it would be another parser; set by a person, a warning would stand beside it."""
    desk.monkeypatch.setenv("IMPORTER_MLX_PYTHON", str(mlx_engine.python))
    files = {**BASE, "chat_template.jinja": CHATML_JSON}
    desk.hub.repos["acme/calls"] = Repo(files)
    imported(desk, "acme/calls", "--backend", "mlx")
    imported(desk, "acme/calls", "--backend", "mlx", "--set", "tool_parser=json_tools", "--name", "mine")
    assert desk("recheck").code == 0
    assert receipt(desk, "calls")["decisions"]["tool_parser"]["value"] == "json_tools"
    desk.hub.repos["acme/calls"].commit({**files, "chat_template.jinja": XML_PARAMETERS})
    ran = desk("recheck", "--json")
    found = lines(ran)
    assert ran.code == 1
    decided = next(d for d in found["calls"]["decisions"] if d["key"] == "tool_parser")
    assert (decided["before"], decided["after"]) == ("json_tools", "qwen3_coder")
    assert decided["why"][0].startswith("mlx 0.32.2 does not read the template with json_tools: one-call: ")
    mine = next(d for d in found["mine"]["decisions"] if d["key"] == "tool_parser")
    assert (mine["before"], mine["after"]) == ("json_tools", "json_tools")
    assert mine["why"][0].startswith("warning: the proof refutes it: ")
    assert 'tool_parser: "json_tools", with a warning' in desk("recheck", "mine").out


@pytest.mark.engine
def test_an_engine_that_is_gone_costs_the_proof_only(desk: Desk, mlx_engine: Installed) -> None:
    desk.monkeypatch.setenv("IMPORTER_MLX_PYTHON", str(mlx_engine.python))
    row = tables.TableRow("calls", {"tool_parser": "mistral"})
    desk.monkeypatch.setattr(tables, "stand_in", lambda: tables.Table((row,)))
    desk.hub.repos["acme/calls"] = Repo({**BASE, "chat_template.jinja": CHATML_JSON})
    imported(desk, "acme/calls", "--backend", "mlx")
    desk.monkeypatch.delenv("IMPORTER_MLX_PYTHON")
    found = {d["key"]: d for d in one(desk, 1)["decisions"]}
    assert found["tool_parser"]["before"] == "json_tools"
    assert found["tool_parser"]["why"][0].startswith("not proved: mlx is not installed")
