"""The reader of a server's own parser: a toy's here, the installed engines' beside their stored files."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gen_defaults import arguments
from importer import backends, launcher
from importer.document import engine_arguments
from importer.document.argument_conflicts import conflicts
from importer.engines import get, install
from importer.engines.registries import PINNED
from importer.launcher import Purpose, isolated

TOY = """
import argparse, dataclasses, enum
from typing import Literal, TYPE_CHECKING
from pydantic import field_validator
from pydantic.dataclasses import dataclass
if TYPE_CHECKING:
    from nowhere import Absent
    from .names import Method
else:
    Method = str

class Form(enum.Enum):
    A = "a"

@dataclasses.dataclass
class InnerConfig:
    size: int = 1
    form: Form = Form.A

@dataclasses.dataclass
class ToyConfig:
    mode: Literal["x", "y"] | None = None
    inner: InnerConfig | None = None
    own: "Absent | None" = None
    by_name: type[Exception] | str = "x"

class Mode(enum.IntEnum):
    NONE = 0
    FAST = 1

class Kind(str, enum.Enum):
    BACKED = "backed"

@dataclass
class StrictConfig:
    mode: Mode | None = None
    kind: Kind = Kind.BACKED
    impl: Literal["own", "other"] | str = "own"

    @field_validator("mode", mode="before")
    @classmethod
    def by_name(cls, value):
        return Mode[value.upper()] if isinstance(value, str) else value

@dataclasses.dataclass
class EngineArgs:
    count: int = 1
    method: Method | str = "a"
    impl: str = "own"
    strict_config: StrictConfig | None = None
    names: list[str] | None = None
    toy_config: ToyConfig | None = None
    quick: bool = False

def any_text(text): return text

parser = argparse.ArgumentParser()
parser.add_argument("--count", type=int, default=1)
parser.add_argument("--names", nargs="+")
parser.add_argument("--method")
parser.add_argument("--impl")
parser.add_argument("--strict-config", type=any_text)
parser.add_argument("--toy-config", type=any_text)
parser.add_argument("--quick", action=argparse.BooleanOptionalAction, default=False)
parser.add_argument("--no-cache", dest="cache", action="store_false")
parser.add_argument("--level", choices=["low", "high"], default="low")
parser.add_argument("--of-server", action="store_true")
parser.add_argument("--size", "-s", "--length", dest="size", type=float)
parser.parse_args()
raise SystemExit("reached what is behind the parser")
"""


def read(folder: Path) -> dict[str, Any]:
    command = isolated(
        "-c", f"import sys, runpy; sys.path.insert(0, {str(folder)!r}); "
        f"sys.argv = ['w', 'toy', 'toy.server']; runpy.run_path({str(arguments.WORKER)!r}, "
        "run_name='__main__')",
        python=sys.executable,
    )  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    data: dict[str, Any] = json.loads(done.stdout.split("RESULT ", 1)[1])
    return data


def test_a_parser_is_read_with_its_types(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "__init__.py").write_text("from toy import args\n")
    (tmp_path / "toy" / "names.py").write_text("from typing import Literal\nMethod = Literal['a', 'b']\n")
    (tmp_path / "toy" / "args.py").write_text(TOY.partition("def any_text")[0])
    server = "from toy.args import *\nimport argparse\ndef any_text" + TOY.partition("def any_text")[2]
    (tmp_path / "toy" / "server.py").write_text(server)
    data = read(tmp_path)
    found = data["arguments"]
    assert found["count"] == {"type": "int", "default": 1}
    assert found["names"] == {"many": True, "type": {"list": "str"}}
    assert found["toy_config"]["type"] == {"config": "ToyConfig"}
    assert found["quick"] == {"off": "--no-quick", "type": "bool", "default": False}
    assert found["no_cache"]["off"] == "--no-cache"
    assert found["no_cache"]["flag"] == ""
    assert found["level"]["type"] == {"one_of": ["high", "low"]}
    assert found["of_server"]["server"] is True
    assert found["size"]["aliases"] == ["length"]
    config = data["configs"]["ToyConfig"]
    assert config["mode"]["type"] == {"one_of": ["x", "y"]}
    assert config["inner"]["type"] == {"config": "InnerConfig"}
    assert config["by_name"]["type"] == {"any_of": ["code", "str"]}
    assert data["configs"]["InnerConfig"] == {"size": {"type": "int"}, "form": {"type": "str"}}
    strict = data["configs"]["StrictConfig"]
    assert strict["mode"]["type"] == {"one_of": [0, 1, "NONE", "FAST"], "any_case": True}
    assert strict["kind"]["type"] == {"one_of": ["backed"]}
    assert found["method"]["type"] == {"any_of": [{"one_of": ["a", "b"]}, "str"]}
    assert (
        found["impl"]["type"] == strict["impl"]["type"] == {"any_of": [{"one_of": ["own", "other"]}, "str"]}
    )


class ToyEngine:
    """Validators with one requirement, one pair, and one refusal for a kind of model."""

    def refusal(self, values: Any, model: str = "experts") -> str | None:
        given = dict(values)
        if given.get("balance") and not given.get("experts"):
            return "balance requires --experts"
        if given.get("lora") and given.get("kernel") == "fast":
            return "no"
        return "of others" if given.get("sparse") and model == "dense" else None

    def always(self, values: Any) -> bool:
        return all(self.refusal(values, model) is not None for model in ("experts", "dense"))


def test_what_validators_refuse_together_is_found() -> None:
    worker = runpy.run_path(str(arguments.VALIDATORS))
    kinds = {"balance": "bool", "experts": "bool", "kernel": {"one_of": ["slow", "fast"]}, "lora": "bool"}
    registry = {"arguments": {name: {"type": kind} for name, kind in {**kinds, "sparse": "bool"}.items()}}
    every = worker["values"](registry)
    assert ("kernel", "fast") in every
    engine = ToyEngine()
    words = engine.refusal([("balance", True)])
    found = worker["required"](engine, registry, ("balance", True), words)
    assert found == ["experts", [True], []]
    accepted = [value for value in every if engine.refusal([value]) is None]
    assert worker["exclusive"](engine, accepted) == [["lora", True, "kernel", "fast"]]


BY_HAND: list[dict[str, Any]] = [
    {"data_parallel_hybrid_lb": True, "data_parallel_external_lb": True, "data_parallel_size": 2,
     "data_parallel_size_local": 1, "data_parallel_rank": 0},
    {"cudagraph_capture_sizes": [1, 2], "compilation_config": {"cudagraph_capture_sizes": [1]}},
    {"max_cudagraph_capture_size": 8, "compilation_config": {"max_cudagraph_capture_size": 8}},
    {"attention_backend": "FLASH_ATTN", "attention_config": {"backend": "FLASH_ATTN"}},
    {"enable_flashinfer_autotune": True, "kernel_config": {"enable_flashinfer_autotune": True}},
    {"kv_transfer_config": {"kv_connector": "NixlConnector"}},
    {"ec_transfer_config": {"ec_connector": "ECExampleConnector"}},
    {"max_loras": 4, "max_cpu_loras": 2, "enable_lora": True},
    {"numa_bind_nodes": [0]},
    {"numa_bind_cpus": ["0"]},
    {"data_parallel_size_local": 4, "data_parallel_size": 2},
    {"max_num_seqs": 9, "max_num_batched_tokens": 8},
    {"long_prefill_token_threshold": 4097, "max_model_len": 4096},
    {"enable_chunked_prefill": False, "max_num_batched_tokens": 512, "max_model_len": 4096},
    {"decode_context_parallel_size": 3, "tensor_parallel_size": 4},
]  # fmt: skip
ASK = """
import importlib.util, json, pathlib, sys
spec = importlib.util.spec_from_file_location("worker", sys.argv[1])
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)
engine = worker.Engine("cpu", pathlib.Path(sys.argv[2]))
print("RESULT", json.dumps([engine.refusal([*one.items()]) for one in json.loads(sys.argv[3])]))
"""


@pytest.mark.parametrize("values", BY_HAND)
def test_a_conflict_that_is_written_by_hand_is_refused(values: dict[str, Any]) -> None:
    own = {key: values[key] for key in ("max_model_len", "tensor_parallel_size") if key in values}
    given = {key: value for key, value in values.items() if key not in own}
    assert [*conflicts({"backend": "vllm", "engine_args": given, **own})]


@pytest.mark.nightly
@pytest.mark.engine
def test_vllm_refuses_every_conflict_that_is_written_by_hand(tmp_path: Path) -> None:
    """Else the line is stale."""
    installed = install.find(get("vllm-cuda"))
    if installed is None:
        pytest.skip("vllm-cuda is not installed")
    words = ("-c", ASK, str(arguments.VALIDATORS), str(tmp_path), json.dumps([{}, *BY_HAND]))
    done = launcher.run(isolated(*words, python=installed.python), Purpose.ENGINE, seconds=600)
    plain, *refused = json.loads(re.findall(r"^RESULT (.*)$", done.output, re.MULTILINE)[-1])
    assert plain is None
    assert [one for one, answer in zip(BY_HAND, refused, strict=True) if answer is None] == []


@pytest.mark.parametrize("engine", sorted(PINNED))
def test_every_pinned_version_has_its_arguments(engine: str) -> None:
    family = backends.serving(engine).name
    registry = engine_arguments.load(family, PINNED[engine])
    assert registry is not None
    assert registry.version == PINNED[engine]
    assert len(registry.arguments) > 20


@pytest.mark.nightly
@pytest.mark.engine
@pytest.mark.parametrize("engine", sorted(arguments.SERVERS))
def test_the_files_are_what_the_installed_engines_say(engine: str) -> None:
    installed = install.find(get(engine))
    if installed is None:
        pytest.skip(f"{engine} is not installed")
    family, version = backends.serving(engine).name, str(installed.version)
    path = engine_arguments.FOLDER / engine_arguments.file_name(family, version)
    data = arguments.read(engine, str(installed.python))
    assert data is not None
    assert arguments.render(family, version, engine, data) == path.read_text(encoding="utf-8")
