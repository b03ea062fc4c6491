"""Servers that change requests or answers on their way: the engine's own faults."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Wire
from tests.faults.steps import Json
from tests.faults.templates import PLAIN

PARTS = dict.fromkeys(("mlx-vlm",), "its streams hold no call")

FAULTS = (
    Fault("streamed-call-as-text", "Streamed calls arrive as content, whole ones as calls.", "engine",
          (Wire("streamed_call_as_text"),), mend="whole answers", bitten="vllm-mlx"),
    Fault("call-ends-with-stop", "A call's finish_reason is the one for a plain answer.", "engine",
          (Wire("finish_is_stop"),), bitten="vllm-mlx"),
    Fault("arguments-encoded-twice", "Arguments are JSON inside JSON.", "engine", (Wire("arguments_twice"),)),
    Fault("every-value-is-text", "Numbers, arrays and objects in arguments arrive as text.", "engine",
          (Wire("values_as_text"),),
          apart={"mlx-vlm": "the arguments that show it are wrong there on good models, too"},
          bitten="nested values encoded twice, vllm-mlx"),
    Fault("last-brace-lost", "Streamed arguments lose their last brace.", "engine",
          (Wire("streamed_brace_lost"),), mend="whole answers",
          bitten="hermes drops a brace, vLLM 19056 and 22885"),
    Fault("calls-without-id", "Calls have no id that a result could name.", "engine", (Wire("no_ids"),)),
    Fault("one-index-for-all-calls", "Parallel calls of a stream share one index and run into one another.",
          "engine", (Wire("one_index"),), mend="whole answers"),
    Fault("end-token-shown-when-streamed", "The token that ends a turn is decoded into streamed answers.",
          "engine", (Wire("streamed_end_token"),), mend="whole answers", bitten="vllm-mlx; vLLM 46224"),
    Fault("thoughts-in-streamed-content", "Streamed thoughts arrive as content, whole ones apart.", "engine",
          (Wire("reasoning_lost_when_streamed"),), mend="whole answers"),
    Fault("answers-counted-as-nothing", "usage says that an answer has no token.", "engine",
          (Wire("counts_nothing"),), apart={"mlx-vlm": "its counts are known to differ and are not judged"}),
    Fault("limit-of-tokens-unheard", "max_tokens of a request does not end an answer.", "engine",
          (Wire("limit_unheard"),)),
    Fault("cut-answers-end-with-stop", "An answer that the limit has cut says that it is whole.", "engine",
          (Wire("finish_is_stop_when_cut"),)),
    Fault("tools-never-reach-the-template",
          "The server drops a request's tools before the template sees them.", "engine",
          (Wire("tools_dropped"),), bitten="18 prompt tokens instead of 283, vllm-mlx 124"),
    Fault("system-never-reaches-the-template",
          "The server drops the system's turn before the template sees it.", "engine",
          (Wire("system_dropped"),)),
    Fault("history-never-reaches-the-template", "The server gives the template the last turn only.", "engine",
          (Wire("last_turn_only"),)),
    Fault("names-that-nobody-offered",
          "The server makes a call of a refusal, of a tool that was not offered.", "engine",
          (Wire("names_invented"),), bitten="the request was not given to the parser, vllm-mlx"),
    Fault("server-breaks-over-results",
          "A conversation with a tool's result ends in an error of the server's.", "engine",
          (Wire("breaks_on_results"),), bitten="LM Studio 2012"),
    Fault("another-template-is-read",
          "The engine reads an older template in tokenizer_config.json, and not chat_template.jinja.",
          "configuration", (Json("tokenizer_config.json", {"chat_template": PLAIN}), Wire("tools_dropped")),
          mend="tokenizer_config.json", bitten="the side file is not read, vmlx 80"),
    Fault("killed-in-the-middle", "The engine is killed while it is asked, as where the memory runs out.",
          "environment", (Wire("dies_midway"),), mend="memory"),
)  # fmt: skip
