"""A call as the model writes it, beside the template's of the history: only another form of it is told."""

from __future__ import annotations

from typing import Any, cast

import pytest

from importer.validation.prompts import WEATHER
from importer.validation.proof_check import retold
from importer.validation.reply import Reply, ToolCall

ASKED = str(WEATHER.messages[-1]["content"])
CALL = "<tool_call>get_weather<arg_key>location</arg_key><arg_value>Paris</arg_value></tool_call>"
JSON = '<tool_call>{"name": "get_weather", "arguments": {"location": "Paris"}}</tool_call>'


class Known:
    """What the engine and the template are known to write."""

    def __init__(self, written: str, history: str) -> None:
        call = ToolCall(0, "call00001", "get_weather", '{"location": "Paris"}')
        self.seen, self.history = Reply(tool_calls=(call,), behind=written), history

    def look(self, _prompt: object) -> Reply:
        return self.seen

    def rendered(self, _prompt: object) -> str:
        return f"<|user|>{ASKED}<|assistant|>{self.history}"


@pytest.mark.parametrize(
    ("written", "history", "differs"),
    [
        (CALL, CALL, False),
        (f"I need the tool.</think>{CALL}", f"</think>{CALL}", False),  # thoughts may be left out
        (f"<think>I need it.</think>\n{CALL}", f"<think></think>{CALL}", False),
        (f"I need the tool.</think>{CALL}<|observation|>", CALL, False),
        (f"I need the tool.</think>{CALL}", f"</think>{JSON}", True),
        (JSON, CALL, True),
        ("No call.", CALL, False),
        (CALL, f"{CALL}{CALL}", False),
    ],
)
def test_a_call_is_told_as_it_is_written(written: str, history: str, differs: bool) -> None:
    assert (retold(cast(Any, Known(written, history))) is not None) is differs
