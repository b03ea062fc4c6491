"""Control starts: a failure is blamed on the one setting without which it passes, and fails with it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from importer.engines import start_trials
from importer.engines.start_trials import Setup
from importer.errors import EngineError
from importer.reasons import Reason
from importer.validation import served_engine
from importer.validation.experiments import beside_scaling, controlled
from importer.validation.outcome import Blame, Fail, NotShown, Pass, ProbeRow, Stage
from importer.validation.probes.chat import plain_chat, simple_answers, usage_counts
from importer.validation.probes.tools import tool_call
from importer.validation.remedy import Remedy
from importer.validation.served_engine import Controls
from tests.facts import as_reason

AGENT = Setup(None, "PYTHONPATH", "/opt/agent")
QUIET = Setup(None, "OMP_NUM_THREADS", "2")
EAGER = Setup("engine_args", "enforce_eager", "True")
ROPE = Setup("config.json", "rope_scaling", "{'factor': 4.0}")
GIVEN = ((EAGER,), (QUIET, AGENT))


@dataclass
class Machine:
    """An engine whose probes pass without ``harm``; ``mends`` are those that do. Starts are counted."""

    harm: Setup
    mends: Collection[str]
    starts: list[tuple[Setup, ...]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    calm: bool = False
    refuses: bool = False

    @contextmanager
    def start(self, left_out: Collection[Setup], seconds: float) -> Iterator[Any]:
        self.starts.append(tuple(left_out))
        self.seconds.append(seconds)
        if self.refuses:
            raise EngineError("engine-slow", name="mlx", seconds="1", log="x")
        yield self.calm or self.harm in left_out

    def ask(self, well: Any, probes: Sequence[Any]) -> list[ProbeRow]:
        return [_row(one.name, None if well and one.name in self.mends else "engine") for one in probes]


def _row(probe: str, blames: Blame | None, *follows: str) -> ProbeRow:
    if blames is None:
        return ProbeRow(probe, "", Pass(as_reason("fine")))
    return ProbeRow(probe, "", Fail(as_reason("wrong"), Stage.WHOLE, follows=follows, part=blames))


def _settled(machine: Machine, *rows: ProbeRow, seconds: float = 1.0, left: float = 600.0) -> list[ProbeRow]:
    controls = Controls(machine.start, GIVEN, (ROPE,), seconds)
    return controlled(list(rows), controls, machine.ask, left, lambda _: None)


def test_a_form_found_by_trying_is_no_cause_and_a_setting_is() -> None:
    machine = Machine(ROPE, (tool_call.name,))
    found = NotShown(as_reason("no call"), remedy=Reason(Remedy.SERVE_TEMPLATE, template="as-written"))
    [row] = _settled(machine, ProbeRow(tool_call.name, "", found, ability="tools"))
    assert row.outcome.remedy == Reason(Remedy.START_WITHOUT, setting=ROPE.reason)


@pytest.mark.parametrize(
    ("original", "longest", "key"),
    [(2048, 2048, "rope_scaling"), (512, 2048, None), (None, 2048, None), (2048, 2048, "rope_parameters")],
)
def test_positions_that_are_stretched_beyond_the_models_length_are_a_note(
    tmp_path: Path, original: int | None, longest: int, key: str | None
) -> None:
    rope = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": original}
    config = {"max_position_embeddings": longest, key or "rope_scaling": rope}
    (tmp_path / "config.json").write_text(json.dumps(config))
    stretched = start_trials.stretched(tmp_path)
    row = ProbeRow(tool_call.name, "", NotShown(as_reason("no call")), ability="tools")
    told, passed = beside_scaling([row, _row(plain_chat.name, None)], stretched)
    assert [f"{key} in config.json" in str(one) for one in told.outcome.notes] == ([True] if key else [])
    assert passed.outcome.notes == ()


def test_a_variable_of_the_machine_is_named_for_all_that_passes_without_it() -> None:
    machine = Machine(AGENT, (tool_call.name, usage_counts.name))
    rows = [
        _row(tool_call.name, "engine"),
        _row(usage_counts.name, "unexplained"),
        _row(plain_chat.name, "engine"),
    ]
    call, usage, other = _settled(machine, *rows)
    for row in (call, usage):
        assert isinstance(row.outcome, Fail)
        assert (row.outcome.attribution, row.outcome.remedy) == (
            "environment", Reason(Remedy.START_WITHOUT, setting=AGENT.reason),
        )  # fmt: skip
    assert other == rows[2]
    assert machine.starts[0] == (EAGER,)
    assert () in machine.starts  # it fails with the variable once more


def test_a_scale_of_config_json_explains_a_model_s_failure_and_no_engine_s() -> None:
    machine = Machine(ROPE, (simple_answers.name,))
    [row] = _settled(machine, _row(simple_answers.name, "model"))
    assert isinstance(row.outcome, Fail)
    assert (row.outcome.attribution, machine.starts[0]) == ("configuration", (ROPE,))
    engine = _row(simple_answers.name, "engine")
    assert _settled(Machine(ROPE, (simple_answers.name,)), engine) == [engine]


def test_a_model_goes_without_tools_only_where_it_calls_none_with_the_default_base_either() -> None:
    base = Setup("config.json", "rope_theta", "1000000.0")
    advised = NotShown(as_reason("no call"), remedy=Reason(Remedy.OFFER_NO_TOOLS))
    row = ProbeRow(tool_call.name, "", advised, ability="tools")
    for mends in ((tool_call.name,), ()):
        machine = Machine(base, mends)
        controls = Controls(machine.start, GIVEN, (ROPE, base), 1.0)
        [found] = controlled([row], controls, machine.ask, 600.0, lambda _: None)
        named = Reason(Remedy.START_WITHOUT, setting=base.reason)
        assert found.outcome.remedy == (named if mends else advised.remedy)
        assert machine.starts[:3] == [(ROPE,), (base,), *([()] if mends else [])]  # positions alone are tried


@pytest.mark.parametrize(
    "machine",
    [
        Machine(AGENT, ()),  # it passes without nothing
        Machine(AGENT, (tool_call.name,), calm=True),  # it passes with everything, too: chance
        Machine(AGENT, (tool_call.name,), refuses=True),
    ],
)
def test_nothing_is_named_that_is_not_seen_both_ways(machine: Machine) -> None:
    row = _row(tool_call.name, "engine")
    assert _settled(machine, row) == [row]


def test_no_start_is_tried_where_it_shows_nothing_or_takes_too_long() -> None:
    machine = Machine(AGENT, (tool_call.name,))
    explained = Fail(as_reason("wrong"), Stage.TEMPLATE, Reason(Remedy.ONE_TEMPLATE, files=("x",)))
    rows = [
        _row(tool_call.name, "environment"), _row(served_engine.STOPS_CLEANLY, "engine"),
        _row(usage_counts.name, None), ProbeRow(plain_chat.name, "", explained),
    ]  # fmt: skip
    assert _settled(machine, *rows) == rows
    named = [_row(tool_call.name, "engine"), rows[-1]]  # the one may follow from the other
    assert _settled(machine, *named) == named
    slow = [_row(tool_call.name, "engine")]
    assert _settled(machine, *slow, seconds=100.0) == slow
    assert _settled(machine, *slow, left=3.0) == slow  # of the run's own time
    assert machine.starts == []


def test_a_control_start_has_the_seconds_that_are_left_to_the_run() -> None:
    machine = Machine(AGENT, (tool_call.name,))
    _settled(machine, _row(tool_call.name, "engine"), left=20.0)
    assert machine.seconds
    assert all(0 < seconds <= 20.0 for seconds in machine.seconds)
    assert machine.seconds == sorted(machine.seconds, reverse=True)
