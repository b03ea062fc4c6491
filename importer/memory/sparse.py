"""vLLM's memory of sparse MLA: the bytes of a token by the kernel that a card's capability selects.

After vLLM 0.32.0 and 0.33.0: ``platforms/cuda.py`` (order of kernels) and ``mla_attention.py`` (bytes of a
token). A latent vector in eight bits is stored in one of two forms: plain, or packed with its scales and an
unquantised rotary part (``fp8_ds_mla``). FlashMLA has the packed form, FlashInfer on Blackwell the plain one.
"""

from __future__ import annotations

from math import ceil

from importer.memory.estimate_types import Load
from importer.memory.layers import Latent

BLACKWELL, CONSUMER = 10, 12  # major compute capabilities of data centre and of other cards
PACKED = {"fp8_ds_mla"}
# Bytes of a token in the remaining packed form, for the only width that has it (512 and 64 values).
NVFP4 = {"nvfp4_ds_mla": 352}
SCALE = (128, 4)  # one scale of 4 bytes for so many values
# Model types whose cache vLLM keeps in eight bits by default, on cards of data centres with Blackwell.
EIGHT_BITS_ON_BLACKWELL = frozenset({"glm_moe_dsa"})


def compute(capability: str | None) -> int | None:
    """Return a compute capability such as ``9.0`` as the number 90, or ``None`` without one."""
    major, _, minor = (capability or "").partition(".")
    return int(major) * 10 + int(minor) if major.isdecimal() and minor.isdecimal() else None


def default_dtype(model_type: str, load: Load) -> str | None:
    """Return the dtype of keys that vLLM sets for a model type on this card, or ``None`` for its own."""
    on_blackwell = load.device == "cuda" and _major(load) == BLACKWELL
    return "fp8_e4m3" if on_blackwell and model_type in EIGHT_BITS_ON_BLACKWELL else None


def token_bytes(cache: Latent, dtype: str, load: Load) -> int | None:
    """Return the bytes of one token in a packed form, or ``None`` where values lie plainly side by side."""
    if dtype in NVFP4:
        return NVFP4[dtype]
    if dtype in PACKED:
        return _packed(cache)
    if not cache.sparse or load.device != "cuda":
        return None
    major = _major(load)
    if major == CONSUMER and (dtype.startswith("fp8") or load.kv_dtype == "auto"):
        return _packed(cache)
    return _packed(cache) if dtype.startswith("fp8") and major != BLACKWELL else None


def is_open(cache: object, dtype: str, load: Load) -> bool:
    """Return whether the form of a sparse layer depends on an unknown capability of the card."""
    sparse = isinstance(cache, Latent) and cache.sparse and dtype not in PACKED and dtype not in NVFP4
    return sparse and load.device == "cuda" and load.capability is None


def _packed(cache: Latent) -> int:
    values, scale = SCALE
    return cache.rank + ceil(cache.rank / values) * scale + 2 * cache.rope


def _major(load: Load) -> int | None:
    return None if load.capability is None else load.capability // 10
