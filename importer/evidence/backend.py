"""Which engine family can load the weights, and which one suits the machine."""

from __future__ import annotations

from importer.evidence.architecture import config_of, quantisation
from importer.evidence.fact import Evidence
from importer.hub.snapshot import Snapshot


def evidence(snapshot: Snapshot, platform: str, machine: str = "this machine") -> list[Evidence]:
    """``platform`` is ``sys.platform``; weights in MLX's own quantisation decide, else the machine does."""
    vision = "vision_config" in config_of(snapshot)
    apple = "mlx-vlm" if vision else "mlx"
    facts = []
    method, quote, source = quantisation(snapshot)
    if method == "mlx":
        says = f"the weights are in MLX's own quantisation ({quote})"
        facts.append(Evidence("files", "backend", apple, source, says, quote))
    if platform == "darwin":
        facts.append(Evidence("machine", "backend", apple, machine, "MLX is native to Apple machines"))
    else:
        facts.append(Evidence("machine", "backend", "vllm", machine, "vLLM serves on CPU and CUDA machines"))
    return facts
