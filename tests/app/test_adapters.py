"""Adapters and drafts beside the model that they are made for."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import yaml

from importer.app.import_request import ImportRequest
from importer.app.session import ImportSession
from importer.app.study import study_snapshot
from importer.decisions.decision import Preferences
from importer.errors import ServiceError
from importer.hub import resolve
from importer.hub.local import ANYWHERE, AllowedFolders
from importer.hub.reference import parse
from tests.commandline import BASE, Desk, desk
from tests.hubserver import Content, Repo

__all__ = ["desk"]

LORA: dict[str, Any] = {"peft_type": "LORA", "base_model_name_or_path": "acme/base", "r": 12}
BACKEND = ("--backend", "vllm", "--no-validate")


def adapter(desk: Desk, name: str = "acme/sql-lora", **settings: object) -> str:
    files: dict[str, Content] = {
        "adapter_config.json": LORA | settings, "adapter_model.safetensors": b"\0" * 9,
    }  # fmt: skip
    desk.hub.repos[name] = Repo(files)
    return name


def arguments(desk: Desk, *words: object) -> dict[str, Any]:
    ran = desk("acme/base", *BACKEND, "--json", "--dry-run", *words)
    assert ran.code == 0, ran.err
    return dict(ran.line["document"]["engine_args"])


def warned(desk: Desk, *words: object) -> list[str]:
    ran = desk("acme/base", *BACKEND, "--json", "--dry-run", *words)
    return [w["message"] for w in ran.line["warnings"] if w["key"].startswith("engine_args.lora_")]


def test_an_adapter_stands_in_the_document_of_its_base(desk: Desk) -> None:
    """The rank is the next one that vLLM has a kernel for, over all modules and adapters."""
    one, two = adapter(desk), adapter(desk, "acme/poem-lora", r=8, rank_pattern={"q_proj": 100})
    assert arguments(desk, "--adapter", one) == {
        "enable_lora": True, "max_lora_rank": 16, "lora_modules": [{"name": "sql-lora", "path": one}],
    }  # fmt: skip
    both = arguments(desk, "--adapter", one, "--adapter", f"poem={two}")
    assert both["lora_modules"][1] == {"name": "poem", "path": two}
    assert (both["max_lora_rank"], both["max_loras"]) == (128, 2)
    assert warned(desk, "--adapter", one, "--adapter", two) == []


def test_an_adapter_in_a_folder_has_its_path(desk: Desk) -> None:
    folder = desk.directory("mine", {"adapter_config.json": LORA, "adapter_model.safetensors": b"\0"})
    assert arguments(desk, "--adapter", folder)["lora_modules"][0] == {"name": "mine", "path": str(folder)}


def test_sglang_has_its_own_form(desk: Desk) -> None:
    ran = desk("acme/base", "--backend", "sglang", "--json", "--dry-run", "--adapter", adapter(desk))
    assert ran.line["document"]["engine_args"] == {
        "enable_lora": True, "max_lora_rank": 12, "lora_paths": ["sql-lora=acme/sql-lora"],
    }  # fmt: skip


def test_a_later_import_keeps_the_adapter_until_it_is_unset(desk: Desk) -> None:
    """Who types --adapter grants it; the file of somebody else does not."""
    assert desk("acme/base", *BACKEND, "--yes", "--adapter", adapter(desk)).code == 0
    document = desk.folder / "models" / "base.yaml"
    assert "review: approved" in desk("acme/base", *BACKEND, "--yes").err
    assert yaml.safe_load(document.read_text())["engine_args"]["lora_modules"][0]["name"] == "sql-lora"
    assert desk("acme/base", *BACKEND, "--yes", "--unset", "adapter").code == 0
    assert "engine_args" not in yaml.safe_load(document.read_text())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"base_model_name_or_path": "acme/other"}, "was trained on acme/other, and this is acme/base"),
        ({"base_model_name_or_path": "/home/me/base"}, "names no base model"),
        ({"use_dora": True}, "for its use_dora"),
        ({"modules_to_save": ["embed_tokens"]}, "for its modules_to_save"),
        ({"r": 1024}, "has rank 1024, and vllm takes 512 at most"),
    ],
)
def test_an_adapter_that_does_not_fit_has_a_warning(
    desk: Desk, settings: dict[str, object], words: str
) -> None:
    assert [words in one for one in warned(desk, "--adapter", adapter(desk, **settings))] == [True]


def test_an_adapter_of_a_copy_of_the_model_is_one_of_the_model(desk: Desk) -> None:
    """Trainers name the quantised copy that they load; its card has the model."""
    desk.hub.repos["mill/base-bnb-4bit"] = Repo(BASE, info={"cardData": {"base_model": "acme/base"}})
    desk.hub.repos["mill/other-4bit"] = Repo(BASE, info={"tags": ["base_model:quantized:acme/other"]})
    for base, warnings in (("mill/base-bnb-4bit", 0), ("mill/other-4bit", 1), ("mill/gone", 1)):
        name = adapter(desk, base_model_name_or_path=base)
        assert len(warned(desk, "--adapter", name)) == warnings, base


def test_a_classifiers_head_beside_an_adapter_is_loaded(desk: Desk) -> None:
    assert warned(desk, "--adapter", adapter(desk, modules_to_save=["score"])) == []


def test_what_is_no_adapter_of_peft_is_refused(desk: Desk) -> None:
    desk.hub.repos["acme/mlx-lora"] = Repo({"adapter_config.json": {"fine_tune_type": "lora"}})
    cases: tuple[tuple[str, tuple[str, ...], str], ...] = (
        ("vllm", ("acme/base",), "no adapter_config.json"),
        ("vllm", ("acme/mlx-lora",), "no adapter_config.json"),
        ("mlx", (adapter(desk),), "mlx serves no adapters"),
        ("vllm", (adapter(desk), adapter(desk)), "two adapters have the name sql-lora"),
    )
    for backend, names, words in cases:
        flags = [word for name in names for word in ("--adapter", name)]
        ran = desk("acme/base", "--backend", backend, "--no-validate", *flags)
        assert (ran.code, words in ran.err) == (2, True), ran.err


def test_an_adapter_alone_names_the_import_of_its_base(desk: Desk) -> None:
    ran = desk(adapter(desk), *BACKEND)
    assert ran.code == 4
    assert "Import acme/base" in ran.err
    assert "--adapter acme/sql-lora" in ran.err


def speculator(verifier: object = "acme/base", **more: object) -> dict[str, Content]:
    method = {"proposal_type": "greedy", "speculative_tokens": 3}
    about = {"proposal_methods": [method], "verifier": {"name_or_path": verifier}}
    return {
        "config.json": {
            **BASE["config.json"],  # type: ignore[dict-item]
            "architectures": ["Eagle3DraftModel"], "speculators_model_type": "eagle3",
            "speculators_config": about, **more,
        },
        "model.safetensors": b"\0",
    }  # fmt: skip


def test_a_draft_offers_the_document_of_the_pair(desk: Desk) -> None:
    """The command of the answer is run as it stands."""
    desk.hub.repos["acme/draft"] = Repo(speculator())
    refused = desk("acme/draft", *BACKEND)
    assert refused.code == 4
    line = refused.err.splitlines()[-1]
    words = shlex.split(line.partition("with it: ")[2])
    assert line.startswith("Import acme/base, the model that it drafts for")
    pair = desk("acme/base", *words, "--no-validate", "--json", "--dry-run").line["document"]
    assert pair["engine_args"]["speculative_config"] == {
        "model": "acme/draft", "revision": desk.hub.repos["acme/draft"].sha, "method": "eagle3",
        "num_speculative_tokens": 3,
    }  # fmt: skip


def test_methods_of_speculators_have_vllms_names(desk: Desk) -> None:
    desk.hub.repos["acme/draft"] = Repo(speculator(speculators_model_type="peagle"))
    assert '"method": "eagle3"' in (told := desk("acme/draft", *BACKEND).err)
    assert '"parallel_drafting": true' in told


def test_a_draft_whose_model_is_no_repository_names_none(desk: Desk) -> None:
    for verifier in ("/data/base", None, {"a": "b"}):
        desk.hub.repos["acme/draft"] = Repo(speculator(verifier))
        assert desk("acme/draft", *BACKEND).err.splitlines()[-1] == "Import the model that it drafts for."


def test_an_adapter_has_a_plain_name_and_an_allowed_folder(desk: Desk) -> None:
    ran = desk("acme/base", *BACKEND, "--adapter", f"a b={adapter(desk)}")
    assert (ran.code, "'a b' is not made of letters" in ran.err) == (2, True)
    folder = desk.directory("mine", {"adapter_config.json": LORA, "adapter_model.safetensors": b"\0"})
    request = ImportRequest("acme/base", preferences=Preferences({"backend": "vllm"}), adapter=(str(folder),))
    snapshot = resolve(parse("acme/base"), ANYWHERE)
    with ImportSession(proves=False, places=AllowedFolders(())) as bench:
        with pytest.raises(ServiceError) as caught:
            study_snapshot(snapshot, request, bench)
        assert caught.value.kind == "no-directories"
