"""The names of cards at consumers that choose a machine by its card.

SkyPilot's are those of ``sky gpus list`` (0.14), Ray's those of ``ray.util.accelerators`` (2.60).
"""

from __future__ import annotations

from collections.abc import Mapping

from importer.config_file.receipt import Receipt

SKYPILOT: Mapping[str, str] = {
    "t4": "T4",
    "v100-16g": "V100",
    "v100-32g": "V100-32GB",
    "a10-24g": "A10G",
    "a100-40g": "A100",
    "a100-80g": "A100-80GB",
    "l4": "L4",
    "l40s": "L40S",
    "h100-80g": "H100",
    "h200": "H200",
    "b200": "B200",
    "b300": "B300",
    "gb200": "GB200",
    "gb300": "GB300",
    "a40": "A40",
    "a6000": "RTXA6000",
    "rtx6000-ada": "RTX6000-Ada",
    "rtx3090": "RTX3090",
    "rtx4090": "RTX4090",
    "rtx5090": "RTX5090",
    "mi300x": "MI300X",
}
RAY: Mapping[str, str] = {
    "t4": "T4",
    "v100-16g": "V100",
    "v100-32g": "V100",
    "a10-24g": "A10G",
    "a100-40g": "A100",
    "a100-80g": "A100",
    "l4": "L4",
    "l40s": "L40S",
    "h100-80g": "H100",
    "h100-94g": "H100",
    "h200": "H200",
    "h20-96g": "H20",
    "b200": "B200",
    "b300": "B300",
    "gb200": "GB200",
    "gb300": "GB300",
    "rtx-pro-6000": "RTX-PRO-6000",
    "mi210": "AMD-Instinct-MI210",
    "mi300x": "AMD-Instinct-MI300X-OAM",
    "mi325x": "AMD-Instinct-MI325X-OAM",
    "mi350x": "AMD-Instinct-MI350X-OAM",
    "mi355x": "AMD-Instinct-MI355X-OAM",
}


def fitted(receipt: Receipt | None, names: Mapping[str, str]) -> str | None:
    """Return a consumer's name of the card that a document is fitted to; ``None`` without one."""
    device = receipt.fit.get("device") if receipt is not None and receipt.fit else None
    return names.get(str((device or {}).get("name")))
