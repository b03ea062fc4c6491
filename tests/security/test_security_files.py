"""The promises of docs/security.md on what is read: small files of a list, each up to a limit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.commandline import Desk, desk
from tests.harming import CONFIG, ESCAPES, INJECTION, TEMPLATE, calm
from tests.hubserver import Content, Fault, Repo

__all__ = ["desk"]


# --- An allow-list of small files, with caps ---


def test_a_gigabyte_announced_is_not_asked_for(desk: Desk) -> None:
    desk.hub.repos["a/big"] = Repo(
        {"config.json": CONFIG}, info={"siblings": [{"rfilename": "config.json", "size": 2**30}]}
    )
    ran = desk("a/big", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (4, "too-large")
    assert len(desk.hub.paths()) == 1


@pytest.mark.slow
def test_a_gigabyte_hidden_in_a_small_answer_is_never_unpacked(desk: Desk, tmp_path: Path) -> None:
    """A megabyte of gzip that holds a gigabyte: counted while it unpacks, in bounded memory."""
    desk.hub.repos["a/bomb"] = Repo(
        {"config.json": CONFIG}, info={"siblings": [{"rfilename": "config.json"}]}
    )
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = packer.compress(b" " * 2**23) + packer.flush(zlib.Z_FULL_FLUSH)
    header = 10  # bytes of gzip's own; what follows can be repeated, since each block stands alone
    body = block + block[header:] * 127
    assert zlib.decompressobj(31).decompress(body, 2**24) == b" " * 2**24
    desk.hub.faults.append(Fault("/resolve/", status=200, headers={"Content-Encoding": "gzip"}, body=body))
    # ru_maxrss survives an exec on Linux, and would be that of the tests' own process
    code = (
        "import resource, sys; from pathlib import Path; from importer.cli.main import run;"
        "code = run(sys.argv[1:]); own = Path('/proc/self/status');"
        "peak = own.read_text().split('VmHWM:')[1].split()[0] if own.exists() else"
        " resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; print(peak); sys.exit(code)"
    )
    argv = [sys.executable, "-c", code, "a/bomb", "--dry-run", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    answer, peak = done.stdout.splitlines()
    assert (done.returncode, json.loads(answer)["error"]["kind"]) == (4, "too-large")
    kib = int(peak) // (1024 if sys.platform == "darwin" else 1)
    assert kib < 400 * 1024


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.json", '{"a":' * 40_000),
        ("tokenizer_config.json", "[" * 100_000),
        ("generation_config.json", '{"a":' * 500 + "1" + "}" * 500),
    ],
)
def test_deep_json_is_one_sentence(desk: Desk, tmp_path: Path, name: str, text: str) -> None:
    model = desk.directory("m", {"config.json": CONFIG, name: text})
    ran = desk(str(model), "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (4, "broken-json")
    assert "Traceback" not in ran.err


def test_a_pipe_and_links_out_of_the_directory_are_not_read(desk: Desk, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps({**CONFIG, "model_type": "verysecret"}), encoding="utf-8")
    for name, make in (("pipe", os.mkfifo), ("link", lambda p: p.symlink_to(secret)),
                       ("device", lambda p: p.symlink_to("/dev/zero"))):  # fmt: skip
        model = desk.directory(name, {"tokenizer_config.json": {"chat_template": TEMPLATE}})
        make(model / "config.json")
        ran = desk(str(model), "--json", "--explain")
        assert (ran.code, ran.line["error"]["kind"]) == (4, "unreadable"), name
        assert "verysecret" not in ran.out + ran.err


def test_a_listing_cannot_name_a_place(desk: Desk, tmp_path: Path) -> None:
    names = ["../../config.json", "/etc/passwd", "config.json\n", "a\\..\\config.json", "config.json"]
    desk.hub.repos["a/b"] = Repo(
        {"config.json": CONFIG},
        info={"siblings": [{"rfilename": n} for n in names], "id": "../../../etc", "modelId": "a/b/../../c"},
    )
    ran = desk("a/b", "--yes", "--no-validate")
    assert ran.code == 0, ran.err
    assert [p.partition("/resolve/")[2].partition("/")[2] for p in desk.hub.paths()[1:]] == ["config.json"]
    written = sorted(p.name for p in (tmp_path / "models").rglob("*") if p.is_file())
    assert written == ["b.evidence.json", "b.receipt.json", "b.yaml", "document.schema.json"]


# --- Whatever the files hold ---

FILES = (
    "config.json", "tokenizer_config.json", "generation_config.json", "added_tokens.json",
    "chat_template.json",
    "special_tokens_map.json", "processor_config.json", "hf_quant_config.json",
)  # fmt: skip
KEYS = (
    "model_type", "architectures", "text_config", "vision_config", "quantization_config", "quantization",
    "quant_method", "quant_algo", "group_size", "bits", "max_position_embeddings", "eos_token_id",
    "temperature",
    "top_p", "top_k", "do_sample", "chat_template", "name", "template", "content", "special", "eos_token",
    "bos_token", "added_tokens_decoder", "additional_special_tokens", "extra_special_tokens", "auto_map",
    "tool_parser_type", "response_template", "tokenizer_class", "_name_or_path", "speculators_config",
    "0", "1",
)  # fmt: skip
TEXTS = (
    "qwen3", "Qwen3ForCausalLM", ESCAPES, INJECTION, "\ud800", "9" * 5000, "../x", "!!python/name:os",
    "<think>",
)  # fmt: skip
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(TEXTS) | st.text(max_size=9)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=25,
)
objects = st.dictionaries(st.sampled_from(KEYS), values, max_size=10)


@pytest.mark.slow
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(files=st.dictionaries(st.sampled_from(FILES), objects, min_size=1, max_size=6))
@example(files={"tokenizer_config.json": {"chat_template": [{"name": [], "template": "x"}]}})
@example(files={"tokenizer_config.json": {"added_tokens_decoder": {"9" * 6000: {"content": "x"}}}})
def test_whatever_the_files_hold_the_answer_is_a_document_or_a_sentence(
    desk: Desk, tmp_path: Path, files: dict[str, Content]
) -> None:
    """Never exit code 70, which is a fault of ours; always one calm line of JSON."""
    model = tmp_path / "fuzzed"
    if model.exists():
        shutil.rmtree(model)
    ran = desk(str(desk.directory("fuzzed", files)), "--dry-run", "--json")
    assert ran.code in {0, 4}, ran.err
    assert calm(ran.out)
    assert ran.line["schema"] == 1
