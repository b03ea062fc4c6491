"""What one version of an engine can load and does by itself; ``engines.abilities`` reads the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["cpu", "cuda", "rocm", "metal"]


@dataclass(frozen=True, slots=True)
class Machine:
    """What an engine is to run on: kind of device, NVIDIA's compute capability (89 for 8.9), name."""

    kind: Kind
    capability: int | None = None
    name: str = "this machine"


@dataclass(frozen=True, slots=True)
class Abilities:
    """Empty where nothing is known: an absent name says nothing then.

    ``architectures``      that it serves itself, with what is special: ``hybrid``, ``image:1``, ``audio?``.
    ``removed``            architectures that it served up to a version.
    ``model_types``        whose configuration it (or its transformers) knows without code of a repository.
    ``tokenizer_types``    model types whose tokenizer it knows without code of a repository.
    ``remapped``           model types that it takes for another (mlx).
    ``methods``            quantisation method to the least compute capability, 0 where none is said.
    ``deprecated``         methods that it refuses unless it is told to allow them.
    ``schemes``            scheme of compressed-tensors to the least compute capability.
    ``formats``            of compressed-tensors that it reads (mlx).
    ``fp8_types``          model types whose FP8 weights it turns into its own (mlx).
    ``processors``         ``method/scheme`` to why it does not run on processors; empty where it does.
    ``refused``            ``method/scheme`` to why it runs on no device.
    ``context_keys``       keys of a config that name a context length.
    ``lengths``            model type to the lengths its class has under keys that the config lacks.
    ``unscaled_ropes``     kinds of rope whose factor is in the length already.
    ``yarn_from_original`` whether YaRN's factor multiplies the original length.
    ``mtp_types``, ``mtp_architectures``  for which it drafts with the model's own heads.
    ``drafts_on_processors``  whether it drafts there at all.
    ``prefix_caching``     way of attending to whether it is on by itself.
    ``takes_kv_scheme``    the scheme of compressed-tensors for the KV cache is in force by itself.
    """

    engine: str = ""
    version: str | None = None
    architectures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)
    model_types: frozenset[str] = frozenset()
    tokenizer_types: frozenset[str] = frozenset()
    remapped: Mapping[str, str] = field(default_factory=dict)
    methods: Mapping[str, int] = field(default_factory=dict)
    deprecated: frozenset[str] = frozenset()
    schemes: Mapping[str, int] = field(default_factory=dict)
    formats: frozenset[str] = frozenset()
    fp8_types: frozenset[str] = frozenset()
    processors: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    context_keys: tuple[str, ...] = ()
    lengths: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unscaled_ropes: frozenset[str] = frozenset()
    yarn_from_original: bool = False
    mtp_types: frozenset[str] = frozenset()
    mtp_architectures: frozenset[str] = frozenset()
    drafts_on_processors: bool = False
    prefix_caching: Mapping[str, bool] = field(default_factory=dict)
    takes_kv_scheme: bool = False

    @property
    def label(self) -> str:
        """Engine and version, for sentences."""
        return f"{self.engine} {self.version}" if self.version else self.engine or "the engine"

    def traits(self, architectures: tuple[str, ...]) -> tuple[str, ...]:
        """Return what is special of the first architecture that it serves."""
        return next((self.architectures[a] for a in architectures if a in self.architectures), ())


UNKNOWN = Abilities()
