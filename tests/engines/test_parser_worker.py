"""The worker's client against misbehaving parsers, and the parts of the worker that need no engine."""

import math
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from importer.chat_template.samples import Sample
from importer.engines import parsers, worker_process
from importer.engines.parser_worker import markers, replay, wire
from importer.engines.parsers import ParserQuestion, ParserWorker, ReadCall
from importer.engines.tokens import Tokens
from importer.errors import EngineError
from importer.proof.parser_verdict import ProofReason
from importer.reasons import Reason
from importer.sentences import render

pytestmark = pytest.mark.usefixtures("fresh_workers")

LIMIT = 1.0  # seconds for a sample; a busy machine is done with a fine one by then
SAMPLES = [Sample("one", "prompt", "first"), Sample("two", "prompt", "second")]


@pytest.fixture
def worker(monkeypatch):
    monkeypatch.setattr(parsers, "SCRIPT", Path(__file__).parents[1].joinpath("faulty_worker.py"))
    with ParserWorker("vllm", Path(sys.executable), seconds=LIMIT) as worker:
        yield worker


def read(worker, *names):
    return {
        ask.tool: readings
        for ask, readings in worker.read(Tokens(), SAMPLES, map(ParserQuestion, names)).items()
    }


def test_reads_each_sample_with_each_parser(worker):
    (first, second) = read(worker, "fine")["fine"]
    assert (first.calls, first.content, first.error) == ((ReadCall("echo", "{}"),), "first", None)
    assert second.content == "second"


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("raises", "LookupError: no such marker"),
        ("dies", "the worker ended with status 7: last words"),
        pytest.param("loops", f"it took longer than {LIMIT:g} s", marks=pytest.mark.slow),
        pytest.param("hangs", "no answer within", marks=pytest.mark.slow),
        pytest.param("hoards", "more memory than it may", marks=pytest.mark.slow),
    ],
)
def test_a_fault_costs_only_its_own_parser(worker, fault, says, monkeypatch):
    if fault == "hangs":
        monkeypatch.setattr(parsers, "GRACE_SECONDS", 1.0)
    got = read(worker, "fine", fault, "prints", "reads_input")
    assert [r.content for name in ("fine", "prints", "reads_input") for r in got[name]] == [
        "first",
        "second",
    ] * 3
    assert all(r.error is not None and says in render(r.error) for r in got[fault])
    assert read(worker, "fine")["fine"][0].content == "first"


def test_a_worker_that_never_lives_is_given_up(worker, monkeypatch):
    monkeypatch.setattr(parsers, "MAX_STARTS", 2)
    with pytest.raises(EngineError, match="lost 2 times") as caught:
        worker.read(
            Tokens(),
            SAMPLES,
            [ParserQuestion("dies"), ParserQuestion("dies", "a"), ParserQuestion("dies", "b")],
        )
    assert caught.value.kind == "worker-failed"


def test_what_cannot_be_asked_at_all_is_an_error(worker):
    with pytest.raises(EngineError, match="this tokenizer cannot be loaded"):
        worker.read(Tokens(eos="refuse"), SAMPLES, [ParserQuestion("fine")])
    assert read(worker, "fine")["fine"][0].content == "first"


def test_one_error_of_every_parser_is_no_verdict_on_any(worker):
    """Another version of the engine has another way to be asked; then its parsers are not refuted."""
    several = [ParserQuestion("raises", f"with-{number}") for number in range(parsers.MANY)]
    with pytest.raises(EngineError, match=r"asked in another way .* LookupError: no such marker"):
        worker.read(Tokens(), SAMPLES, several)
    found = worker.read(Tokens(), SAMPLES, [*several, ParserQuestion("fine")])
    assert found[several[0]][0].error is not None


def test_a_tokenizer_that_does_not_load_is_reported(worker, tmp_path):
    worker.read(Tokens(tmp_path), SAMPLES, [ParserQuestion("fine")])
    assert worker.unloaded == "ValueError: it needs code of its own"
    read = Reason(
        ProofReason.READ, count=0, of=2, field="tool_parser", engine="vllm", version="1", assumed=False,
        parsers=(), more=False, unloaded=worker.unloaded,
    )  # fmt: skip
    assert "its tokenizer does not load (ValueError: it needs code of its own)" in render(read)
    worker.unloaded = None
    worker.read(Tokens(), SAMPLES, [ParserQuestion("fine")])
    assert worker.unloaded is None


def test_aliases_are_names_of_one_class(worker):
    listed = {parser.name: parser.aliases for parser in worker.list()}
    assert listed["fine"] == ("prints",)
    assert listed["prints"] == ("fine",)
    assert listed["dies"] == ()


def test_an_environment_without_python_is_an_error(tmp_path):
    with (
        ParserWorker("mlx", tmp_path / "python") as worker,
        pytest.raises(EngineError, match="could not be started"),
    ):
        worker.version()


def test_an_environment_without_the_engine_is_an_error():
    with (
        ParserWorker("mlx", Path(sys.executable)) as worker,
        pytest.raises(EngineError, match="No module named"),
    ):
        worker.version()


@pytest.mark.skipif(sys.platform != "linux", reason="looks at the process")
def test_tokens_of_the_hub_stay_out_of_the_worker(worker, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert worker.version() == "1"
    around = Path(f"/proc/{worker._conversation._process.pid}/environ").read_bytes()
    assert b"OMP_NUM_THREADS=1" in around
    assert b"hf_secret" not in around


def test_the_bell_rings_through_except_exception():
    def stubborn():
        for _ in range(3):
            try:
                while True:
                    pass
            except Exception:
                continue

    assert wire.attempt(0.05, stubborn) == {"error": {"kind": "overrun", "seconds": 0.05}}


def test_thinking_markers_come_from_tuples_and_from_assignments():
    source = """
def _infer_thinking(tokenizer):
    TOKENS = [("<a>", "</a>"), ("<b>", "</b>")]
    if tokenizer:
        think_start = "<|c>thought"
        think_end = "<c|>"
        return (think_start, think_end)
    return (None, None)

def other():
    return ("not", "these")
"""
    assert markers.thinking_markers(source) == [("<a>", "</a>"), ("<b>", "</b>"), ("<|c>thought", "<c|>")]


def test_a_stream_is_joined_by_index():
    stream = replay.Assembled()
    stream.add({"reasoning": "hm", "content": None, "calls": [(1, "g", None)]})
    stream.add({"reasoning": "m", "content": "a", "calls": [(0, "f", "{"), (1, None, "{}")]})
    stream.add({"reasoning": None, "content": "b", "calls": [(0, None, "}")]})
    assert stream.reading() == replay.reading([("f", "{}"), ("g", "{}")], "hmm", "ab")


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        (replay.reading([("f", '{"b":2, "a":1}')], None, " x\n"), True),
        (replay.reading([("f", '{"a": 1, "b": true}')], "", "x"), False),
        (replay.reading([("g", '{"a": 1, "b": 2}')], None, "x"), False),
        (replay.reading([("f", '{"a": 1, "b": 2')], None, "x"), False),
        (replay.reading([("f", '{"a": 1, "b": 2}')], "hm", "x"), False),
        ({"error": {"kind": "raised", "words": "ValueError: no"}}, False),
    ],
)
def test_white_space_and_order_of_keys_make_no_difference(other, alike):
    assert replay.same(replay.reading([("f", '{"a": 1, "b": 2}')], None, "x"), other) is alike


def test_replay_returns_only_what_differs():
    whole = replay.reading([], None, "abcd")

    def feed(cuts):
        if cuts == [2]:
            raise ValueError("cut badly")
        return replay.reading([], None, "abc" if len(cuts) == 3 else "abcd")

    got = replay.replay(whole, feed, tokens=4, places=replay.in_two(4, {}))
    assert (got["count"], got["different"]) == (4, 2)
    assert got["differs"] == [
        {"split": 0, "reading": replay.reading([], None, "abc")},
        {"split": 2, "reading": {"error": {"kind": "raised", "words": "ValueError: cut badly"}}},
    ]


def test_a_worker_that_died_between_two_questions_is_started_again(worker):
    assert read(worker, "fine")["fine"][0].content == "first"
    worker._conversation._process.kill()
    worker._conversation._process.wait()
    assert worker.version() == worker.version()


OWNER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from importer.chat_template.samples import Sample
from importer.engines import parsers, worker_process
from importer.engines.tokens import Tokens
parsers.SCRIPT = Path(sys.argv[2])
with parsers.ParserWorker("vllm", Path(sys.executable), seconds=600) as worker:
    worker.version()
    print("ready", flush=True)
    worker.read(Tokens(), [Sample("one", "p", "c")], [parsers.ParserQuestion("burns")])
"""


def test_a_worker_ends_with_an_owner_that_is_killed(tmp_path):
    """It was busy with a stranger's text for six more minutes, and held its memory."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", OWNER, str(root), str(root / "tests" / "faulty_worker.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        family = psutil.Process(owner.pid).children(recursive=True)
        assert family
        time.sleep(0.5)
        owner.send_signal(signal.SIGKILL)
    _gone, alive = psutil.wait_procs(family, 10)
    for process in alive:
        process.kill()
    assert not alive


def test_the_workers_of_an_import_share_a_budget_of_processor_time(worker, monkeypatch):
    """A look at the clock of the wall is none: a parser that burns is stopped long before its patience."""
    monkeypatch.setattr(parsers, "GRACE_SECONDS", 600.0)
    worker.budget = worker_process.Budget(1.0, 1.0)
    begun = time.monotonic()
    for _ in range(2):  # and no later question of this import gets more
        with pytest.raises(EngineError) as failed:
            read(worker, "burns")
        assert "more than 1 s of processor time" in failed.value.message
    assert time.monotonic() - begun < 60
    worker.budget = worker_process.Budget()
    worker.list()  # the engine's own work, whoever asks first
    assert worker.budget.left == worker.budget.seconds
    assert read(worker, "fine")["fine"][0].content == "first"
    assert 0 < worker.budget.left < math.inf
