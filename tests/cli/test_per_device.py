"""``--per-device``: a document of its own for a device, its name, and who else is left alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from importer.document.name_allocator import Slot, ending, variant_names
from importer.memory.devices import short_name
from tests.commandline import BASE, Desk, receipt
from tests.failing import WEIGHTS
from tests.hubserver import Repo

OWN = ("acme/base", "--device", "8xH100", "--per-device", "--no-validate")


def kinds(ran_line: dict[str, Any]) -> list[str]:
    return [warning["kind"] for warning in ran_line["warnings"]]


@pytest.mark.slow
def test_a_device_has_a_document_of_its_own(desk: Desk) -> None:
    assert desk("acme/base", "--device", "rtx4090", "--no-validate").code == 0
    first = desk.files()
    made = desk(*OWN, "--set", "temperature=0.3")
    assert made.code == 0
    assert "Wrote models/base-8xh100.yaml" in made.err
    assert {path: desk.files()[path] for path in first} == first
    assert receipt(desk, "base-8xh100")["fit"]["device"]["name"] == "h100-80g"

    again = desk("acme/base", "--device", "h100-80gx8", "--per-device", "--no-validate")
    assert "base-8xh100.yaml stays as it is" in again.err, "the same device by another name, and its settings"
    other = desk("acme/base", "--device", "l4", "--per-device", "--no-validate", "--json").line
    assert (other["name"], kinds(other)) == ("base-l4", [])
    mlx = desk("acme/base", "--backend", "sglang", "--device", "8xh100", "--per-device", "--no-validate")
    assert "Wrote models/base-sglang-8xh100.yaml" in mlx.err
    listed = [json.loads(line) for line in desk("list", "--json").out.splitlines()]
    assert listed[0]["variants"] == ["base-8xh100", "base-l4", "base-sglang-8xh100"]
    assert {path: desk.files()[path] for path in first} == first


@pytest.mark.slow
def test_without_the_option_one_line_names_both_devices(desk: Desk) -> None:
    words = ("acme/base", "--no-validate")
    desk(*OWN)
    own = desk.files()["models/base-8xh100.yaml"]
    assert kinds(desk(*words, "--device", "rtx4090", "--json").line) == []
    assert "Needs attention: device" not in desk(*words, "--set", "temperature=0.2").err
    changed = desk(*words, "--device", "l4", "--dry-run")
    warning = "Needs attention: device: the document was for rtx4090 and is for l4 now"
    assert changed.err.count(f"{warning}; hits runs on the other; --per-device makes one for each") == 1
    line = desk(*words, "--device", "8xh100", "--json").line
    assert (line["name"], kinds(line)) == ("base", ["other-device"])
    reason = line["warnings"][0]["reason"]
    assert (reason["kind"], reason["before"], reason["after"]) == (
        "OtherDevice.changed", "rtx4090", "8xh100-80g",
    )  # fmt: skip
    gone = desk(*words, "--unset", "device", "--json").line["warnings"]
    assert "was for 8xh100-80g and is for no device in particular now" in gone[0]["message"]
    assert desk.files()["models/base-8xh100.yaml"] == own


def test_the_name_of_a_document_for_another_device_is_refused(desk: Desk) -> None:
    desk(*OWN)
    before = desk.files()
    ran = desk("acme/base", "--device", "l4", "--name", "base-8xh100", "--json")
    error = ran.line["error"]
    assert (ran.code, error["kind"]) == (5, "other-device")
    assert error["message"] == "base-8xh100 is the document for 8xh100-80g, and this import is for l4."
    assert desk.files() == before
    by_name = desk("acme/base", "--name", "base-8xh100", "--memory", "40GiB", "--no-validate", "--json").line
    assert receipt(desk, "base-8xh100")["request"]["device"] == "8xh100-80g"
    assert (by_name["name"], receipt(desk, "base-8xh100")["request"]["per_device"]) == ("base-8xh100", True)
    assert desk("acme/base", "--no-validate").code == 0
    named = desk("acme/base", "--device", "l4", "--per-device", "--name", "base", "--json").line["error"]
    assert "base is the document for no device in particular" in named["message"]


def test_a_device_is_required(desk: Desk) -> None:
    ran = desk("acme/base", "--per-device")
    assert (ran.code, desk.files()) == (2, {})
    assert "Invalid value for --device: a document for one device alone requires a device." in ran.err
    desk.monkeypatch.setenv("IMPORTER_DEVICE", "l4")
    assert desk("acme/base", "--per-device", "--no-validate").code == 0
    assert receipt(desk, "base-l4")["request"]["device"] == "l4"


@pytest.mark.slow
def test_a_recheck_and_a_list_keep_the_device(desk: Desk) -> None:
    desk.hub.repos["acme/other"] = Repo(WEIGHTS)
    (desk.folder / "list.txt").write_text("acme/base\nacme/other\n")
    ran = desk("--from", "list.txt", "--device", "8xh100", "--per-device")
    assert [json.loads(line)["name"] for line in ran.out.splitlines()] == ["base-8xh100", "other-8xh100"]
    desk.hub.repos["acme/base"].commit({**BASE, "generation_config.json": {"temperature": 0.7}})
    found = json.loads(desk("recheck", "base-8xh100", "--json").out)
    assert "parameters.temperature" in [change["path"] for change in found["changes"]]
    assert "device" not in str(found["changes"])


@pytest.mark.slow
def test_another_repository_may_take_the_models_own_name(desk: Desk) -> None:
    """The first model has no document with its own name, so the second one gets it."""
    desk(*OWN)
    assert desk("other/base", "--no-validate", "--json").line["name"] == "base"
    assert desk(*OWN, "--json").line["name"] == "base-8xh100", "the present document is found"
    fresh = desk("acme/base", "--device", "l4", "--per-device", "--no-validate", "--json").line
    assert fresh["name"] == "acme--base-l4"


@pytest.mark.parametrize(("label", "end"), [
    ("8xh100-80g", "8xh100"), ("h100-80g", "h100"), ("rtx4090", "rtx4090"), ("m3-max-64g", "m3-max-64g"),
    ("2xmi300x", "2xmi300x"), ("this-machine", "this-machine"),
])  # fmt: skip
def test_a_name_ends_with_the_shortest_name_of_the_device(label: str, end: str) -> None:
    assert (short_name(label), ending(label)) == (end, end)


def test_a_long_name_keeps_its_end() -> None:
    slot = Slot("vllm", "8xh100-80g", per_device=True)
    names = [name for name, _ in zip(variant_names("a" * 119, slot), range(3), strict=False)]
    assert [name[-16:] for name in names] == ["aaaaaaaaa-8xh100", "aaaa-vllm-8xh100", "aa-vllm-8xh100-2"]
    assert max(map(len, names)) <= 128
