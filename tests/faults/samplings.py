"""Sampling values that do not arrive, or that no answer survives."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Started
from tests.faults.steps import Says

REQUEST = {"mlx-vlm": "it takes sampling from requests only, and they carry it"}

FAULTS = (
    Fault("temperature-lost", "The document's temperature is not what the engine is started with.",
          "configuration", (Started({"parameters.temperature": None}),),
          given=(Says({"parameters.temperature": 0.7, "parameters.top_k": 0, "parameters.top_p": 1.0}),),
          apart=REQUEST | {"vllm-mlx": "what nobody says it draws at 0.7, too"},
          bitten="a temperature that is ignored, vLLM 15241"),
    Fault("temperature-absurd", "A temperature at which no sentence holds together.", "configuration",
          (Says({"parameters.temperature": 5.0, "parameters.top_k": 0, "parameters.top_p": 1.0}),),
          mend="temperature"),
    Fault("penalty-absurd", "A repetition penalty at which no word may come again.", "configuration",
          (Says({"parameters.repeat_penalty": 3.0}),),
          apart={"vllm-mlx": "its thread that generates dies of a penalty, and nothing more is answered"},
          mend="repeat_penalty", bitten="presence_penalty 1.5 for a whole family, LocalAI"),
    Fault("answers-end-too-soon", "max_tokens is so small that no answer comes to its end.", "configuration",
          (Says({"parameters.max_tokens": 8}),), mend="max_tokens"),
    Fault("stop-word-within-answers", "A stop word of the document stands in ordinary answers.",
          "configuration", (Says({"stopwords": [" can"]}),),
          apart=dict.fromkeys(("mlx-vlm", "vllm-mlx"),
                              "its server ignores stop words, and clients send none"), mend="stopwords"),
)  # fmt: skip
