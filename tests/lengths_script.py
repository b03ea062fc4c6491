"""Runs in vLLM's environment: what it makes of each folder of a config, one line of JSON for each.

A file ``overrides.json`` beside the config has ``hf_overrides``.
"""

import json
import os
import sys
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}

from vllm.config.model import ModelConfig
from vllm.model_executor.models import registry

registry._run_in_subprocess = lambda inspect: inspect()  # a process for each model costs 8 s of processor

for folder in sys.argv[1:]:
    told: dict[str, object] = {"folder": folder}
    try:
        beside = Path(folder, "overrides.json")
        overrides = json.loads(beside.read_text(encoding="utf-8")) if beside.exists() else {}
        config = ModelConfig(model=folder, skip_tokenizer_init=True, hf_overrides=overrides)
        told |= {
            "length": config.max_model_len, "prefix_caching": config.is_prefix_caching_supported,
            "quantisation": config.quantization,
        }  # fmt: skip
    except Exception as error:
        told["error"] = str(error)[:300]
    sys.stdout.write(f"{json.dumps(told)}\n")
