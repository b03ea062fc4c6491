"""The comments of a YAML file: short, whole, never the value again; a form for each reason that decides."""

from __future__ import annotations

import json
import re
from itertools import takewhile
from typing import Any, get_args

import pytest

from importer.decisions.decision import Chosen, RejectedCandidate, WeighReason
from importer.decisions.sampling import SamplingReason
from importer.document import build
from importer.document.attention import Attention, AttentionReason
from importer.document.build import comment, edited, heads, source
from importer.document.yaml_edit.cst import Layout
from importer.proof.parser_verdict import ProofReason
from importer.reasons import Reason, ReasonKind, key_of
from importer.sentences import placeholders, short
from importer.signals import tables
from importer.signals.evidence import Status
from importer.signals.reasons import ModelNameReason
from tests.commandline import BASE, Desk
from tests.hubserver import Repo
from tests.models.formats import FORMATS as MODELS
from tests.product.test_messages import enumerations, uses
from tests.syntax import MODULES, tree

# Kinds of the deciding rooms that never stand first at a value: they refuse, explain, stand beside, or lose.
UNDECIDING = {
    f"{name}.{kind}"
    for name, kinds in {
        "CardReason": "unclear",
        "CodeReason": "elsewhere needed not-known not-needed",
        "DerivedReason": "limits",
        "DraftReason": "as-trained holds",
        "FitReason": "neutral no-length would-hold would-hold-all",
        "ForeignReason": "tools-given would-offer",
        "FrontendReason": "elsewhere guessed",
        "GenerationReason": "new-tokens passed-over unusable",
        "KindReason": "in-folders is only-gguf tagged",
        "KindRemedy": ("adapted adapted-unnamed drafted drafted-for no-mlx own-library served-by"),
        "LoadReason": (
            "does-not-read needs-card no-architectures no-code no-config no-model-type no-tokenizer no-tower "
            "not-in-config "
            "not-its-own not-known not-named refused removed tensors tensors-unread together too-old-a-card "
            "trial-failed"
        ),
        "ObservedReason": "unread",
        "ParserReason": (
            "beaten calls-unread fails fails-streamed forbidden known-to-have-none labelled loses-plain "
            "lower-precedence "
            "none-reads not-judged not-registered only-liberal pair-loses proof-agrees "
            "read-not-trained refuted same-effect "
            "switch-untried taken-by-itself takes-another thinks-opened thinks-switched tools-unseen "
            "unsettled user-refuted"
        ),
        "PromptVerdict": "differ lost not-started",
        "SamplingReason": "both-ways-differ greedy server-draws",
        "ShownReason": "may-think switches",
        "StopReason": "unnamed",
        "SwitchReason": "heeds unheard",
        "InputReason": "no-processor",
        "TaskReason": "no-way sparse",
        "ThinkingSign": "base block card family name switch tokens",
        "TokenNumberReason": "beyond no-begin no-control",
        "Unavailable": "not-fetched not-installed not-known not-run-here nothing-known nothing-rendered",
        "CoverageEffect": "loses template-offered tools-hidden tools-off tools-sometimes",
        "CoverageReason": "checked variables",
        "WeighReason": "higher-precedence lost stands-beside user-decides",
        "WeightDoubt": "foreign-index ghosts pickles plain sets stray unread",
        "WeightFault": (
            "broken empty foreign-index in-folders missing other-format other-names "
            "parts-missing pickles pointer-size unquantised"
        ),
    }.items()
    for kind in kinds.split()
}
# The longest value that each field really has.
LONGEST: dict[str, Any] = {
    "judge": "parsers of vllm",
    "family": max((name for table in tables.TABLES for name in tables.raw(table)["families"]), key=len),
    "model_type": "multi_modality_conversation_v2", "part": "text_config", "file": "preprocessor_config.json",
    "engine": "vllm-mlx 0.32.2", "version": "0.32.2", "right": 12, "asked": 12, "proved": "0.32.2",
    "format": "<|tool_calls_section_begin|> json", "convention": "json", "template": "json",
    "rope": "longrope", "key": "max_position_embeddings", "mode": "non_thinking", "stored": "bfloat16",
    "goal": "throughput", "heads": 128, "count": 256, "copies": 128, "cards": 128, "example": True,
    "held": 100_000, "wanted": 100_000, "tokens": 1_048_576, "places": ("tokenizer_config.json",),
    "reason": Reason(WeighReason.SET_BY_USER),
}  # fmt: skip


def declared() -> list[ReasonKind]:
    """Every kind of a reason that the rooms declare which give reasons for values."""
    rooms = ("importer.signals.", "importer.decisions.", "importer.memory.choose")
    names = {
        getattr(node, "name", "")
        for module in MODULES
        if module.startswith(rooms)
        for node in tree(MODULES[module]).body
    }
    used = {type(use.kind).__name__ for use in uses()} - {"AmountReason"}  # amounts inside other reasons
    return [kind for name in sorted(names & used) for kind in enumerations()[name]]


@pytest.mark.slow
@pytest.mark.xdist_group("syntax")
def test_every_kind_that_decides_has_a_short_form() -> None:
    assert {key_of(kind) for kind in declared() if not kind.short} == UNDECIDING


@pytest.mark.xdist_group("syntax")
def test_short_forms_are_short_and_of_fields_that_are_there() -> None:
    every = (kind for kinds in enumerations().values() if kinds is not AttentionReason for kind in kinds)
    for kind in [kind for kind in every if kind.short]:
        check_short(kind)


def check_short(kind: ReasonKind) -> None:
    if isinstance(kind.short, str):
        fields = [use.fields for use in uses() if use.kind is kind and use.fields is not None]
        assert all({*placeholders(kind.short)} <= held for held in fields), (kind, fields)
    versioned = kind not in (ProofReason.READ, SamplingReason.CUT_BY_SERVER)
    reason = Reason(kind, **LONGEST | {"engine": LONGEST["engine"] if versioned else "vllm-mlx"})
    made = short(reason)
    assert made
    assert len(made.split()) <= 4, made
    for status in get_args(Status):
        shown = comment(
            Chosen(7.25, status, (reason,), (RejectedCandidate(1.5, "inference_defaults.json", reason),))
        )
        assert len(shown) <= build.LONGEST
        assert "…" not in shown
        assert "7.25" not in shown
        assert status == "user" or made in shown, "it names what decided"


def test_a_comment_names_what_decided() -> None:
    table = Reason(ModelNameReason.SAMPLING, family="qwen3", mode="thinking", key="k", value=1, origin=None)
    assert comment(Chosen(0.6, "table", (table,))) == "table: qwen3, thinking"
    lost = (RejectedCandidate(1.5, "t.json", table), RejectedCandidate(2.5, "u.json", table))
    assert comment(Chosen(0.6, "table", (table,), lost)) == "table: qwen3, thinking; not 1.5 (t.json)"
    long = (RejectedCandidate(1.5, "x" * 60, table),)
    assert comment(Chosen(0.6, "table", (table,), long)) == "table: qwen3, thinking; not 1.5"
    read = Reason(ProofReason.READ, engine="vllm", judge="vllm", version="0.32.0")
    named = Reason(ModelNameReason.PARSER, family="qwen3")
    assert comment(Chosen("hermes", "proved", (read, named))) == "proved (vllm 0.32.0); family qwen3"
    assert source(Chosen("hermes", "proved", (read, named))) == "proved (vllm 0.32.0)"
    assert comment(Chosen(1, "user", (Reason(WeighReason.SET_BY_USER),))) == "set by user"


def test_a_source_with_a_line_break_stays_in_its_line() -> None:
    table = Reason(ModelNameReason.SAMPLING, family="a\nb", mode=None, key="k", value=1, origin=None)
    assert comment(Chosen(1, "table", (table,))) == "table: a b"


def test_a_persons_value_keeps_what_is_imported_where_that_is_short() -> None:
    assert edited("0.7") == "edited in this file; imported: 0.7"
    assert edited(None) == edited("x" * 60) == "edited in this file"


def test_the_head_has_a_line_for_each_kind() -> None:
    why = Reason(WeighReason.SET_BY_USER)
    made = heads(Attention(kind, "reasoning_parser", why) for kind in (*AttentionReason, *AttentionReason))
    assert len(made) == len(AttentionReason)
    assert max(map(len, made)) <= build.LONGEST


@pytest.mark.slow
def test_comments_of_real_imports(desk: Desk) -> None:
    """Every format that is trained here, a base model, edited values, a list of every key."""
    config = {**BASE["config.json"], "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}  # type: ignore[dict-item]
    desk.hub.repos["Qwen/Qwen3-8B"] = Repo({**BASE, "config.json": config})
    references = ["Qwen/Qwen3-8B", "acme/base", *(str(recipe.folder) for recipe in MODELS.values())]
    (desk.folder / "list").write_text("\n".join(references))
    for more in (
        (),
        ("--backend", "mlx"),
        ("--backend", "vllm", "--set", "temperature=0", "--device", "rtx4090"),
    ):
        rows = [json.loads(line) for line in desk("--from", "list", *more).out.splitlines()]
        assert not [row for row in rows if "error" in row]
        for path in sorted((desk.folder / "models").glob("*.yaml")):
            _check(path.read_text())


def _check(text: str) -> None:
    head = [*takewhile(lambda line: line.startswith("#"), text.splitlines())][1:]
    assert all(len(line) <= 60 for line in head), head
    remarks = Layout(text).remarks()
    assert len(remarks) > 3
    for path, remark in remarks.items():
        line = next(row for row in text.splitlines() if remark.text in row)
        value = re.split(r": |- ", line.partition("  #")[0], maxsplit=1)[1].strip()
        assert len(remark.text) <= 60, remark.text
        assert "…" not in remark.text
        words = re.findall(r"[\w.<>-]+", remark.text)
        assert value not in words, (path, line)
