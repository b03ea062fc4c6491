"""Reasoning parsers: wrong, missing, superfluous; thoughts that never end."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Arguments, Option
from tests.faults.steps import Says, Text

FLAGS = dict.fromkeys(("mlx", "mlx-vlm"), "it infers its parser and takes none")

FAULTS = (
    Fault("thoughts-read-by-nobody", "A model that thinks is served without a reader of thoughts.",
          "configuration", (Option("reasoning_parser", None),), apart=FLAGS, mend="Set reasoning_parser:",
          bitten="<think> in the content, vLLM 34625"),
    Fault("thoughts-read-as-another-models",
          "Thoughts between tags are read by the parser that waits for other words.", "configuration",
          (Option("reasoning_parser", "granite"),), apart=FLAGS),
    Fault("reasoning-parser-of-none",
          "A model that never thinks is read by a parser that takes all for a thought.", "configuration",
          (Option("reasoning_parser", "deepseek_r1"),), base="qwen3coder", apart=FLAGS,
          mend="reasoning_parser", bitten="content null with a reasoning parser on an Instruct model"),
    Fault("thinking-markers-unknown", "The model's markers of a thought are none that the engine knows.",
          "configuration",
          (Text("<think>", "<ponder>"), Text("</think>", "</ponder>"),
           Text("<think>", "<ponder>", "tokenizer.json"), Text("</think>", "</ponder>", "tokenizer.json"),
           Text("<think>", "<ponder>", "tokenizer_config.json"),
           Text("</think>", "</ponder>", "tokenizer_config.json"))),
    Fault("reasoning-parser-lost-at-the-start",
          "The document names a reasoning parser and the engine is started without.", "configuration",
          (Arguments(drop=("--reasoning-parser",)),), base="deepseek", apart=FLAGS, mend="reasoning",
          bitten="no opening <think> in the answer, vLLM 22507"),
    Fault("template-leaves-the-thought-open",
          "Told not to think, the template opens a thinking block and does not close it.", "configuration",
          (Text("'<think>\\n\\n</think>\\n\\n'", "'<think>\\n\\n'"),),
          given=(Says({"chat_template_kwargs": {"enable_thinking": False}}),), mend="template",
          bitten="an unclosed block, and the answer inside of it"),
)  # fmt: skip
