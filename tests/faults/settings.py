"""Names, context, template variables, dtype."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Arguments, Served, Started
from tests.faults.steps import Says

LIMITLESS = dict.fromkeys(("mlx", "mlx-vlm", "vllm-mlx"), "its server has no limit to be started with")

FAULTS = (
    Fault("wrong-served-name", "Clients use a name under which the model is not served.", "configuration",
          (Served("someone/else"),), mend="name"),
    Fault("context-above-the-models", "The document's context is longer than the model's.", "configuration",
          (Says({"max_model_len": 1_000_000}),), mend="max_model_len",
          bitten="a default of ten million tokens, vLLM 19407"),
    Fault("context-of-another-length", "The engine is started with a shorter context than the document's.",
          "configuration", (Started({"max_model_len": 512}),), apart=LIMITLESS, mend="max_model_len"),
    Fault("thinking-switched-by-another-name",
          "The document switches thinking off by a variable that the template does not know.",
          "configuration", (Says({"chat_template_kwargs": {"thinking_enabled": False}}),),
          apart={"mlx-vlm": "the adapter refuses variables that do not reach its template"},
          mend="thinking_enabled", bitten="the template's default and the parser's differ, SGLang 20833"),
    Fault("dtype-unknown", "The document names a dtype that there is not.", "configuration",
          (Says({"dtype": "float13"}),),
          apart=dict.fromkeys(("mlx", "mlx-vlm", "vllm-mlx"), "its server takes no dtype"), mend="dtype"),
    Fault("context-too-short-to-talk", "The context is so short that a question with a tool does not fit.",
          "configuration", (Says({"max_model_len": 96}),), apart=LIMITLESS),
    Fault("another-parser-at-the-start",
          "The engine is started with another tool parser than the document names.", "configuration",
          (Arguments(drop=("--tool-call-parser",), add=("--tool-call-parser=qwen3_coder",)),),
          apart=dict.fromkeys(("mlx", "mlx-vlm"), "it infers its parser and takes none"),
          mend="Start the engine with the document"),
)  # fmt: skip
