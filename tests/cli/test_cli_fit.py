"""--device, --memory and --exact-fit: decisions, receipt, what is shown, what is asked of the Hub."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from importer.document import schema
from tests.commandline import Desk
from tests.hub.test_headers import shard
from tests.hubserver import Repo

CONFIG = {
    "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 4, "hidden_size": 1024,
    "intermediate_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 5000, "max_position_embeddings": 1_048_576, "torch_dtype": "bfloat16",
}  # fmt: skip
WEIGHTS = shard({"model.embed_tokens.weight": 5000, "lm_head.weight": 7000})
MLX = {**CONFIG, "quantization": {"group_size": 64, "bits": 4}}


@pytest.fixture(autouse=True)
def repositories(desk: Desk) -> None:
    desk.hub.repos["acme/long"] = Repo({"config.json": CONFIG, "model.safetensors": WEIGHTS})
    desk.hub.repos["acme/mlx"] = Repo({"config.json": MLX, "model.safetensors": WEIGHTS})


def receipt(desk: Desk, name: str = "long") -> dict[str, Any]:
    data = json.loads((desk.folder / "models" / f"{name}.receipt.json").read_text())
    schema.check("receipt", data, name)
    return dict(data)


def test_a_context_that_fits_is_the_vendors(desk: Desk) -> None:
    line = desk("acme/long", "--device", "H200", "--json").line
    decided = line["decisions"]
    assert (decided["max_model_len"]["value"], decided["max_model_len"]["status"]) == (1_048_576, "vendor")
    assert decided["max_model_len"]["overruled"] == []
    assert line["document"]["gpu_memory_utilization"] == 0.92
    kept = receipt(desk)
    assert kept["request"]["device"] == "h200"
    assert kept["fit"]["verdict"] == "fits"
    assert kept["fit"]["device"]["source"]
    assert kept["fit"]["weights"]["source"] in {"index", "api", "files", "config"}
    terms = kept["fit"]["estimate"]["terms"]
    assert all(t["low"] <= t["likely"] <= t["high"] for t in terms)
    assert kept["fit"]["estimate"]["total"]["likely"] == sum(t["likely"] for t in terms)


def test_a_context_that_does_not_fit_gives_way(desk: Desk) -> None:
    ran = desk("acme/long", "--device", "rtx3090", "--memory", "10GiB", "--yes", "--no-validate")
    assert ran.code == 0
    kept = receipt(desk)
    decided = kept["decisions"]["max_model_len"]
    assert decided["value"] < 1_048_576
    assert decided["value"] % 1024 == 0
    assert decided["overruled"][0]["value"] == 1_048_576
    assert kept["fit"]["chosen"]["max_model_len"] == decided["value"]
    assert (kept["request"]["memory"], kept["fit"]["device"]["memory"]) == (10 * 2**30, 10 * 2**30)
    assert f"max_model_len: {decided['value']}" in (desk.folder / "models" / "long.yaml").read_text()
    assert "\nfit: shortened on rtx3090, about " in ran.out
    shown = desk("show", "long").out
    assert "fit: 9.2 GiB of rtx3090 hold" in " ".join(shown.split())
    assert " kv cache " in shown
    assert "likely" in shown
    explained = desk("acme/long", "--device", "rtx3090", "--memory", "10GiB", "--dry-run", "--explain")
    assert " kv cache " in explained.err


def test_yes_approves_nothing_that_does_not_start(desk: Desk) -> None:
    """The user's value stays, with the reason; an edit in the file is judged at the next import."""
    options = ("acme/long", "--device", "rtx3090", "--memory", "10GiB", "--yes", "--no-validate")
    ran = desk(*options, "--set", "max_model_len=1048576")
    assert (ran.code, receipt(desk)["review"]["state"]) == (0, "pending")
    assert "Needs attention: max_model_len: 1,048,576 tokens do not fit; 9.2 GiB of rtx3090 hold" in ran.err
    assert receipt(desk)["fit"]["verdict"] == "too-large"
    assert desk(*options, "--unset", "max_model_len").code == 0
    assert receipt(desk)["review"]["state"] == "approved"
    document = desk.folder / "models" / "long.yaml"
    length = receipt(desk)["decisions"]["max_model_len"]["value"]
    document.write_text(document.read_text().replace(f"max_model_len: {length}", "max_model_len: 1048576"))
    ran = desk(*options, "--set", "parameters.temperature=0.5")
    assert "Needs attention: max_model_len: 1,048,576 tokens do not fit" in ran.err
    assert "; review: stale." in ran.err


def test_the_next_best_plans_are_printed(desk: Desk) -> None:
    """Beside the document's own, each in two lines of 80 columns; one card has nothing to compare."""
    lines = desk("acme/long", "--device", "8xh200", "--goal", "throughput", "--dry-run").out.splitlines()
    printed = [line for line in lines if line.startswith(("plan: ", "next: "))]
    assert [line[:6] for line in printed] == ["plan: ", "next: ", "next: "]
    bounds = [
        line for line in lines if re.fullmatch(r" {6}at best [\d.]+ ms/token, [\d,]+ tokens/s \(.*\)", line)
    ]
    assert len(bounds) == len(printed)
    assert all(re.search(r"; context [\d,]+; [\d,]+ × 8,192 tokens$", line) for line in printed)
    assert all(len(line) <= 80 and "…" not in line for line in (*printed, *bounds))
    assert "next: " not in desk("acme/long", "--device", "h200", "--dry-run").out


@pytest.mark.slow
def test_what_does_not_fit_is_said_and_written_all_the_same(desk: Desk) -> None:
    ran = desk("acme/long", "--device", "rtx4090", "--memory", "100MiB", "--no-validate")
    assert ran.code == 0
    assert "Needs attention: max_model_len: it does not fit rtx4090 (0.0977 GiB): weights" in ran.err
    kept = receipt(desk)
    (warning,) = (w for w in kept["warnings"] if w["kind"] == "does-not-fit")
    assert (warning["key"], warning["reason"]["device"]) == ("max_model_len", "rtx4090 (0.0977 GiB)")
    text = (desk.folder / "models/long.yaml").read_text()
    assert "\n# attention: the model does not fit the device\n" in text
    assert desk("acme/long", "--json").line["warnings"] == kept["warnings"]
    decided = kept["decisions"]["max_model_len"]
    assert (decided["value"], decided["status"]) == (1_048_576, "vendor")
    assert "does not fit" in decided["why"][1]
    assert all(name in decided["why"][1] for name in kept["fit"]["would_hold"])


def test_without_a_device_there_is_no_limit_of_any_machine(desk: Desk) -> None:
    assert desk("acme/long", "--no-validate").code == 0
    kept = receipt(desk)
    assert (kept["fit"]["device"], kept["fit"]["verdict"], kept["request"]["device"]) == (
        None,
        "neutral",
        None,
    )
    assert kept["fit"]["would_hold"]
    text = (desk.folder / "models/long.yaml").read_text()
    assert "max_model_len: 1048576" in text
    assert not any(
        key in text for key in ("kv_cache_memory_bytes", "gpu_memory_utilization", "tensor_parallel")
    )
    before = desk.files()
    assert desk("acme/long", "--no-validate").code == 0
    assert desk.files() == before


@pytest.mark.slow
@pytest.mark.parametrize("words", [("--device", "this-machine"), ("--memory", "4GiB"), ()])
def test_this_machine_is_the_device_where_the_user_says_so(
    desk: Desk, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not words:
        monkeypatch.setenv("IMPORTER_DEVICE", "this machine")
    assert desk("acme/long", "--no-validate", "--set", "max_model_len=64", *words).code == 0
    kept = receipt(desk)
    assert kept["fit"]["device"]["name"] == "this machine"
    assert "kv_cache_memory_bytes" in (desk.folder / "models/long.yaml").read_text()
    assert desk("acme/long", "--no-validate").code == 0
    again = receipt(desk)
    assert again["request"]["preferences"] == kept["request"]["preferences"]
    assert again["fit"]["device"]["name"] == "this machine", "a device is remembered"


@pytest.mark.slow
def test_a_goal_is_remembered_and_taken_back(desk: Desk) -> None:
    words = ("--device", "8xh200", "--goal", "throughput", "--concurrency", "64", "--context", "4096")
    assert desk("acme/long", "--no-validate", *words).code == 0
    kept = receipt(desk)
    assert kept["fit"]["aim"] == {"goal": "throughput", "concurrency": 64, "context": 4096}
    assert [p["device"] for p in kept["fit"]["plans"]] == ["8xh200"] * 3
    text = (desk.folder / "models/long.yaml").read_text()
    assert "max_num_seqs: 8" in text
    assert "data_parallel_size: 8" in text
    assert "max_model_len: 4096" in text
    shown = " ".join(desk("show", "long").out.split())
    assert "plans for 8xh200: the document's, then the next-best" in shown
    again = desk("acme/long", "--no-validate")
    assert "goal=throughput, concurrency=64, context=4096" in " ".join(again.err.split())
    assert receipt(desk)["fit"] == kept["fit"]
    assert desk("recheck", "long").code == 0
    unset = ("--unset", "goal", "--unset", "concurrency", "--unset", "context")
    assert desk("acme/long", "--no-validate", *unset).code == 0
    assert "aim" not in receipt(desk)["fit"]
    for wrong in (("--goal", "fame"), ("--concurrency", "0"), ("--context", "-4")):
        assert desk("acme/long", *wrong).code == 2


def test_the_device_chooses_the_engine(desk: Desk) -> None:
    def backend(*words: str) -> Any:
        return desk("acme/long", "--dry-run", "--json", *words).line["decisions"]["backend"]

    assert backend("--device", "m3-max-64g")["value"] == "mlx"
    assert backend("--device", "rtx4090")["value"] == "vllm"
    assert backend("--device", "m3-max-64g")["overruled"] == []
    ran = desk("acme/mlx", "--device", "h100-80g", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (2, "bad-value"), "no engine on a card reads its weights"
    ran = desk("acme/long", "--device", "h100-80g", "--backend", "mlx", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (2, "bad-value")
    ran = desk("acme/long", "--device", "m3-max-64g", "--backend", "vllm", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (2, "bad-value")


@pytest.mark.parametrize("words", [("--device", "h100-80g"), ("--memory", "4GiB"), ()])
def test_the_hub_is_asked_no_more_than_before(desk: Desk, words: tuple[str, ...]) -> None:
    assert desk("acme/long", "--dry-run", *words).code == 0
    assert len(desk.hub.log) == 2, "the listing and config.json"
    assert not any(".safetensors" in path for path in desk.hub.paths())


def test_exact_fit_asks_for_the_headers_once(desk: Desk) -> None:
    parts = {f"model-{i:05}-of-00003.safetensors": shard({f"w{i}": 1000 * i}) for i in (1, 2, 3)}
    desk.hub.repos["acme/parts"] = Repo({"config.json": CONFIG, **parts})
    assert desk("acme/parts", "--exact-fit", "--no-validate").code == 0
    assert [e.status for e in desk.hub.log if "safetensors" in e.path] == [206] * 3
    weights = receipt(desk, "parts")["fit"]["weights"]
    assert (weights["source"], weights["low"], weights["likely"], weights["high"]) == (
        "headers", 6000, 6000, 6000,
    )  # fmt: skip
    desk.hub.log.clear()
    assert desk("acme/parts", "--exact-fit", "--no-validate").code == 0
    assert len(desk.hub.log) == 1


def test_exact_fit_of_a_directory(desk: Desk) -> None:
    desk.directory("toy", {"config.json": json.dumps(CONFIG), "model.safetensors": WEIGHTS})
    assert desk("./toy", "--exact-fit", "--no-validate").code == 0
    assert receipt(desk, "toy")["fit"]["weights"]["source"] == "headers"
    assert desk.hub.log == []
    (desk.folder / "toy" / "model.safetensors").write_bytes(b"\x7f" * 100)
    ran = desk("./toy", "--exact-fit", "--dry-run", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (4, "bad-weights")
    assert desk("./toy", "--dry-run").code == 0, "nobody looked"


def test_headers_at_hand_outrank_the_index(desk: Desk) -> None:
    """Drafts that no file holds are not offered, and a tower that is not there is no use for pictures."""
    names = [f"model.layers.{i}.mlp.up_proj.weight" for i in range(4)]
    config = {**CONFIG, "model_type": "qwen3_5", "architectures": ["Qwen3_5ForConditionalGeneration"],
              "mtp_num_hidden_layers": 1, "vision_config": {"depth": 2, "hidden_size": 8}}  # fmt: skip
    ghosts = ["mtp.fc.weight", "visual.blocks.0.weight"]
    index = {"weight_map": dict.fromkeys([*names, *ghosts], "model.safetensors")}
    held = {"config.json": config, "model.safetensors": shard(dict.fromkeys(names, 64)),
            "model.safetensors.index.json": index}  # fmt: skip
    desk.hub.repos["acme/ghost"] = Repo(held)
    believed = desk("acme/ghost", "--backend", "vllm", "--dry-run", "--json").line
    assert believed["document"]["known_usecases"] == ["chat", "vision"]
    exact = desk("acme/ghost", "--backend", "vllm", "--exact-fit", "--dry-run", "--json").line
    desk.directory("ghost", {name: json.dumps(x) if isinstance(x, dict) else x for name, x in held.items()})
    for seen in (exact, desk("./ghost", "--backend", "vllm", "--dry-run", "--json").line):
        assert seen["document"]["known_usecases"] == ["chat"]
        assert seen["document"]["limit_mm_per_prompt"] == {"image": 0, "video": 0}
        assert any("2 tensors that no file of weights has" in w["message"] for w in seen["warnings"])
        assert "engine_args.speculative_config" not in seen["decisions"]


def test_offline_and_exact(desk: Desk) -> None:
    assert desk("acme/long", "--dry-run").code == 0
    ran = desk("acme/long", "--offline", "--exact-fit", "--dry-run", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (3, "not-cached")
    assert desk("acme/long", "--exact-fit", "--dry-run").code == 0
    desk.hub.log.clear()
    assert desk("acme/long", "--offline", "--exact-fit", "--dry-run").code == 0
    assert desk.hub.log == []


def wrote(desk: Desk, reference: str, name: str, *words: str) -> None:
    ran = desk(reference, "--name", name, "--backend", "vllm", "--yes", "--no-validate", *words)
    assert ran.code == 0, ran.err


@pytest.mark.slow
def test_every_front_end_is_told_what_each_device_holds(desk: Desk) -> None:
    """One judgement: that of an import for the device."""
    wrote(desk, "acme/long", "long", "--device", "rtx3090", "--memory", "10GiB")
    ran = desk("fit", "long", "--devices", "nvidia,apple", "--json")
    rows = {row["device"]: row for row in map(json.loads, ran.out.splitlines())}
    assert {row["kind"] for row in rows.values()} == {"cuda", "metal"}
    assert next(iter(rows)) == min(
        (n for n in rows if rows[n]["answer"] == "whole"), key=lambda n: rows[n]["memory"]
    )
    assert rows["h200"]["answer"] == "whole"
    assert (rows["h200"]["tokens"], rows["h200"]["whole_on"]) == (1_048_576, "h200")
    part = rows["rtx3060-12g"]
    assert (part["answer"], part["whole_on"][1:]) == ("part", "xrtx3060-12g")
    there = desk("acme/long", "--device", "rtx3060-12g", "--dry-run", "--json", "--name", "other").line[
        "document"
    ]
    assert part["tokens"] == there["max_model_len"]
    assert part["kv_cache_dtype"] == there.get("engine_args", {}).get("kv_cache_dtype", "auto")
    assert rows["m4-max-64g"]["answer"] == "not-applicable"
    assert (rows["p100"]["answer"], rows["p100"]["whole_on"]) == ("not-applicable", None)
    assert rows["p100"]["reason"].startswith("vLLM does not run on p100")
    assert rows["m4-max-64g"]["reason"].startswith("vllm does not run on Apple's graphics")
    assert desk("fit", "long", "--devices", "nvidea").code == 2
    text = desk("fit", "long", "--devices", "amd,apple")
    assert "AMD's cards" in text.out
    assert "Not applicable:" in text.err
    assert "m4-max-64g" not in text.out


def test_the_fit_of_a_document_is_printed(desk: Desk) -> None:
    wrote(desk, "acme/long", "long", "--device", "h200")
    assert "weights" in desk("fit", "long").out
    made = json.loads(desk("fit", "long", "--json").out)["fit"]
    assert made == receipt(desk)["fit"]
    pool, beside = (
        made["pool"],
        sum(
            term["likely"] for term in made["estimate"]["terms"] if term["part"] not in ("kv cache", "states")
        ),
    )
    assert pool["blocks"] < pool["all"] == (made["budget"] - beside) // pool["block"]


@pytest.mark.parametrize("command", ["fit", "show"])
def test_a_fit_without_an_estimate_prints_why(desk: Desk, command: str) -> None:
    desk.hub.repos["acme/bare"] = Repo({"model.safetensors": WEIGHTS})
    wrote(desk, "acme/bare", "bare")
    assert "has no config.json that could be read" in " ".join(desk(command, "bare").out.split())


HUGE = {**CONFIG, "num_hidden_layers": 100, "hidden_size": 16_384, "intermediate_size": 131_072}


@pytest.mark.parametrize(
    ("reference", "backend", "device", "says"),
    [
        ("acme/mlx", "mlx", (), "only vLLM's starts are measured, and its engine is mlx"),
        ("acme/long", "vllm", ("--device", "h200"), "it is for h200, and this machine (cpu) is here"),
        ("acme/huge", "vllm", ("--device", "this-machine"), "weights"),
    ],
)
def test_what_cannot_be_measured_is_told_and_changes_nothing(
    desk: Desk, reference: str, backend: str, device: tuple[str, ...], says: str
) -> None:
    desk.hub.repos["acme/huge"] = Repo({"config.json": HUGE})
    words = ("--backend", backend, "--name", "one", "--yes", "--no-validate")
    assert desk(reference, *words, *device).code == 0
    before = desk.files()
    ran = desk("fit", "one", "--measure")
    assert ran.code == 6
    assert "The memory of one was not measured" in ran.err
    assert says in ran.err
    assert desk.files() == before


LOG = """\
(APIServer pid=1) INFO [utils.py:299] vLLM API server version {version}
(APIServer pid=1) INFO [utils.py:233] non-default args: {{'model': 'm', 'gpu_memory_utilization': 0.92{more}}}
(EngineCore pid=812) INFO [gpu_model_runner.py:5150] Model loading took {weights} GiB memory and 3.1 seconds
(EngineCore pid=812) INFO [gpu_worker.py:760] Available KV cache memory: {cache} GiB
(EngineCore pid=812) INFO [kv_cache_utils.py:2327] GPU KV cache size: {tokens} tokens, Maximum concurrency \
for 1,048,576 tokens per request: 3.21x
(EngineCore pid=812) INFO [gpu_worker.py:1040] Free memory on device (78.61/{total} GiB) on startup. Desired \
GPU memory utilization is (0.92, 72.85 GiB). Actual usage is 2.9 GiB for consumed memory (weights + non-torch)
"""
SOUND = {
    "version": "0.33.0",
    "weights": "2.05",
    "more": "",
    "cache": 52.85,
    "tokens": "3,463,168",
    "total": 79.18,
}


def logged(desk: Desk) -> None:
    """Import a model of 2.05 GiB for the card of the log."""
    index = {
        "metadata": {"total_size": int(2.05 * 2**30)},
        "weight_map": {"a": "model-00001-of-00001.safetensors"},
    }
    desk.hub.repos["acme/long"] = Repo({"config.json": CONFIG, "model.safetensors.index.json": index})
    assert desk("acme/long", "--device", "h100", "--yes", "--no-validate").code == 0


def test_a_log_of_a_start_takes_the_place_of_a_measurement(desk: Desk) -> None:
    logged(desk)
    estimate, review = receipt(desk)["fit"]["estimate"]["terms"], receipt(desk)["review"]["state"]
    (desk.folder / "start.log").write_text(LOG.format(**SOUND))
    ran = desk("fit", "long", "--log", "start.log", "-q")
    assert ran.code == 0, ran.err
    assert "weights 2.05 GiB, all beside the cache 20.00 GiB, cache 52.85 GiB" in ran.err
    kept = receipt(desk)["fit"]
    terms = {t["part"]: t["likely"] for t in kept["estimate"]["terms"]}
    assert sum(n for part, n in terms.items() if part != "kv cache") == pytest.approx(20 * 2**30, rel=1e-6)
    assert kept["estimate"]["terms"] != estimate
    assert kept["measured"]["device"]["name"] == "h100-80g"
    assert receipt(desk)["review"]["state"] == review


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"total": 23.52}, "the log is of a card with 23.5 GiB, and it is for h100-80g, with 79.1 GiB"),
        ({"cache": 200}, "the log is not believed"),
        ({"weights": "0.0"}, "the log has weights of 0 KiB, and those of this model are 2.0 GiB"),
        ({"weights": "14.99"}, "the log has weights of 15.0 GiB, and those of this model are 2.0 GiB"),
        ({"version": "0.31.0"}, "they are for 0.33.0, and the run was of 0.31.0"),
        ({"more": ", 'max_num_seqs': 16"}, "slots is 1024, and was 16 in the run"),
        ({"more": ", 'kv_cache_dtype': 'fp8'"}, "kv_dtype is auto, and was fp8 in the run"),
    ],
)
def test_a_log_of_another_start_is_named_as_such(desk: Desk, changed: dict[str, Any], said: str) -> None:
    logged(desk)
    (desk.folder / "start.log").write_text(LOG.format(**{**SOUND, **changed}))
    ran = desk("fit", "long", "--log", "start.log")
    assert said in " ".join(ran.err.split())
    assert "measured" not in receipt(desk)["fit"]


def test_a_log_that_cannot_be_read_changes_nothing(desk: Desk) -> None:
    logged(desk)
    before = receipt(desk)
    assert "the log missing.log cannot be read" in desk("fit", "long", "--log", "missing.log").err
    (desk.folder / "empty.log").write_text("INFO started\n")
    assert "does not say how much memory it took" in desk("fit", "long", "--log", "empty.log").err
    settings = (
        "{'gpu_memory_utilization': [1], 'tensor_parallel_size': 'x', 'max_num_seqs': {}, 'dtype': 1e999}"
    )
    (desk.folder / "odd.log").write_text(
        LOG.format(**SOUND).partition("\n")[0] + f"\nnon-default args: {settings}\n"
    )
    assert "does not say how much memory it took" in desk("fit", "long", "--log", "odd.log").err
    assert receipt(desk) == before
