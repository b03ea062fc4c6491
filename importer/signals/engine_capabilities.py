"""Abilities of one engine version and the machine it runs on; ``engines.abilities`` reads the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from importer.chat_template.loader import ANY, Loader
from importer.frozen import frozen

Kind = Literal["cpu", "cuda", "rocm", "metal"]


@frozen
class Machine:
    """The target device of an engine: its kind, NVIDIA's compute capability (89 for 8.9), its name.

    ``named`` is false where the document is for no device in particular.
    """

    kind: Kind
    capability: int | None = None
    name: str = "this machine"
    named: bool = True

    @property
    def is_named_card(self) -> bool:
        """Return whether the user named a card, so that no engine on MLX is a choice."""
        return self.kind in ("cuda", "rocm") and self.name != "this machine"


@frozen
class OfLibrary:
    """What a library of MLX loads, whose loader an engine calls; the fields are those of ``Abilities``."""

    library: str
    model_types: frozenset[str]
    remapped: Mapping[str, str]
    methods: Mapping[str, int]
    formats: frozenset[str]
    bits: Mapping[str, tuple[int, ...]]
    refused_tensors: Mapping[str, tuple[str, ...]]
    towers: Mapping[str, tuple[str, ...]]
    fp8_types: frozenset[str]


@frozen
class Abilities:
    """What one version of an engine can load and does by default; an empty field is unknown.

    ``architectures``      that it serves itself, with their traits: ``hybrid``, ``image:1``, ``audio?``.
    ``pooling``            architectures that pool, with what they return: ``embed``, ``classify``,
                           ``token-classify``, ``reward`` or ``late-interaction``.
    ``pooler``             its ``settings``, its ``ways`` of pooling, and the words that it ``reads`` in files
                           of sentence-transformers.
    ``transcribes``        architectures that turn sound into text: ``only`` that, or ``also`` chat.
    ``removed``            architectures that it served up to a version.
    ``model_types``        with a configuration that it (or its transformers) has without a repository's code.
    ``tokenizer_types``    model types with a tokenizer that it has without a repository's code.
    ``tokenizer_classes``  that alone the settings of a tokenizer may name; empty where any name loads one.
    ``remapped``           model types that it loads as another (mlx).
    ``methods``            quantisation method to the least compute capability, 0 where there is no bound.
    ``deprecated``         methods that it rejects without a flag that allows them.
    ``schemes``            scheme of compressed-tensors to the least compute capability.
    ``formats``            of compressed-tensors that it reads (mlx).
    ``bits``               method to the bits of a weight that alone it reads (mlx).
    ``refused_tensors``    method to ends of names of tensors that it refuses (mlx).
    ``towers``             model type to the types of a vision tower that alone it takes (mlx-vlm).
    ``library``            whose loader it calls, if another's; ``sighted``  for models with other inputs than
                           text (vllm-mlx).
    ``fp8_types``          model types with FP8 weights that it converts to its own (mlx).
    ``processors``         ``method/scheme`` to why it does not run on processors; empty where it does.
    ``refused``            ``method/scheme`` to why it runs on no device.
    ``context_keys``       keys of a config that name a context length.
    ``lengths``            model type to the lengths its class has under keys that the config lacks.
    ``unscaled_ropes``     kinds of rope with a factor that the length already contains.
    ``yarn_from_original`` whether YaRN's factor multiplies the original length.
    ``mtp_types``, ``mtp_architectures``  that it drafts for with the model's own heads.
    ``drafts_on_processors``  whether it drafts on CPUs at all.
    ``prefix_caching``     class of attention to whether prefix caching is on by default.
    ``takes_kv_scheme``    whether it applies the scheme of compressed-tensors for the KV cache by default.
    ``loader``             of the chat template.
    """

    engine: str = ""
    version: str | None = None
    architectures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pooling: Mapping[str, str] = field(default_factory=dict)
    pooler: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    transcribes: Mapping[str, str] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)
    model_types: frozenset[str] = frozenset()
    tokenizer_types: frozenset[str] = frozenset()
    tokenizer_classes: frozenset[str] = frozenset()
    remapped: Mapping[str, str] = field(default_factory=dict)
    methods: Mapping[str, int] = field(default_factory=dict)
    deprecated: frozenset[str] = frozenset()
    schemes: Mapping[str, int] = field(default_factory=dict)
    formats: frozenset[str] = frozenset()
    bits: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    refused_tensors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    towers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    library: str = ""
    sighted: OfLibrary | None = None
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
    loader: Loader = ANY

    @property
    def label(self) -> str:
        """Return engine and version for messages."""
        return f"{self.engine} {self.version}" if self.version else self.engine or "the engine"

    def traits(self, architectures: tuple[str, ...]) -> tuple[str, ...]:
        """Return the traits of the first architecture that it serves."""
        return next((self.architectures[a] for a in architectures if a in self.architectures), ())


UNKNOWN = Abilities()
