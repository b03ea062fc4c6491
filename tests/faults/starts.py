"""What keeps an engine from starting."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import NoModule, PortTaken
from tests.faults.steps import Cut, Json

FAULTS = (
    Fault("weights-cut-short", "Half of the weights file is there.", "environment",
          (Cut("model.safetensors", 0.5),)),
    Fault("somebody-on-the-port", "Somebody else listens on the port.", "environment", (PortTaken(),)),
    Fault("architecture-that-nobody-serves",
          "The repository names a kind of model that the engine does not know.", "configuration",
          (Json("config.json", {"model_type": "qwen99", "architectures": ["Qwen99ForCausalLM"]}),)),
    Fault("package-missing", "A package that the engine needs is not in its environment.", "environment",
          (NoModule("tokenizers"),)),
    Fault("shape-of-another-model", "config.json speaks of more layers than there are weights for.",
          "configuration", (Json("config.json", {"num_hidden_layers": 4}),)),
)  # fmt: skip
