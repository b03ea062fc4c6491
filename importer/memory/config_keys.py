"""A reader of ``config.json`` under the many names of its keys: values are checked, numbers have bounds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import Any

from importer import config
from importer.frozen import frozen
from importer.hub import snapshot

MOST = 1 << 40  # no dimension of a model is larger
MOST_LAYERS = 500  # real models stay under 150
MOST_DECLARED = 100_000  # layers; classes of configs in engines make lists as long

LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "decoder_layers")
DEPTH = ("depth", "num_hidden_layers", "encoder_layers", "layers", "vt_num_hidden_layers", "n_layers")
HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
HEADS = ("num_attention_heads", "n_head", "n_heads", "decoder_attention_heads")
KV_HEADS = (
    "num_key_value_heads",
    "n_head_kv",
    "num_kv_heads",
    "multi_query_group_num",
    "num_attention_groups",
    "kv_n_heads",
)
HEAD = ("head_dim", "kv_channels", "attention_head_dim", "hidden_size_per_head")
VOCABULARY = ("padded_vocab_size", "vocab_size", "n_vocab")


@frozen
class Keys:
    """A config with transformers' defaults of its ``model_type`` for absent keys."""

    config: Mapping[str, object]
    defaults: Mapping[str, object]
    listed: dict[tuple[str, ...], tuple[int, ...]] = field(default_factory=dict, compare=False)
    counted: dict[tuple[str, ...], int | None] = field(default_factory=dict, compare=False)
    parts: dict[str, Keys] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, config: Mapping[str, object]) -> Keys:
        """Return the config with the defaults of its ``model_type``."""
        kind = config.get("model_type")
        return cls(config, _defaults().get(kind, {}) if isinstance(kind, str) else {})

    @classmethod
    def inside(cls, config: Mapping[str, object], name: str) -> Keys:
        """Return a tower's config with the defaults of its owner's ``model_type``."""
        kind, inner = config.get("model_type"), config.get(name)
        defaults = _defaults().get(f"{kind}/{name}", {})
        return cls(inner if isinstance(inner, Mapping) else {}, defaults)

    def get(self, *names: str) -> Any:
        """Return the first set value other than null; a null in the config hides the default."""
        return next(iter(self._values(names)), None)

    def count(self, *names: str) -> int | None:
        """Return the first whole number from 0 to ``MOST``; a number with a zero fraction is whole."""
        if names not in self.counted:  # each layer asks the same
            found = (n for v in self._values(names) if (n := whole(v)) is not None)
            self.counted[names] = next(found, None)
        return self.counted[names]

    def _values(self, names: Sequence[str]) -> list[Any]:
        own, defaults = self.config, self.defaults
        found = [v for n in names if (v := own.get(n)) is not None]
        if defaults:
            found += [v for n in names if n not in own and (v := defaults.get(n)) is not None]
        return found

    def size(self, *names: str, default: int = 0) -> int:
        """Return ``count``, or ``default``."""
        number = self.count(*names)
        return default if number is None else number

    def flag(self, *names: str) -> bool:
        """Return whether the first set value is true."""
        return self.get(*names) is True

    def word(self, *names: str) -> str:
        """Return the first set value if it is a text, else an empty text."""
        value = self.get(*names)
        return value if isinstance(value, str) else ""

    def words(self, *names: str) -> tuple[str, ...]:
        """Return the first list of words."""
        return next((listed for name in names if (listed := _words(self.get(name)))), ())

    def numbers(self, *names: str) -> tuple[int, ...]:
        """Return the first list of whole numbers, cached; true counts as 1."""
        if names not in self.listed:
            self.listed[names] = next((n for name in names if (n := _numbers(self.get(name)))), ())
        return self.listed[names]

    def inner(self, name: str) -> Keys:
        """Return the object under a key, or an empty one."""
        if name not in self.parts:
            value = self.get(name)
            self.parts[name] = Keys(value if isinstance(value, Mapping) else {}, {})
        return self.parts[name]

    def block(self, layer: int, name: str) -> Keys | None:
        """Return Nemotron NAS's settings for a part of one layer, or ``None``."""
        listed = snapshot.listed(self.get("block_configs"))
        inner = snapshot.mapping(listed[layer]).get(name) if layer < len(listed) else None
        return Keys(inner, {}) if isinstance(inner, Mapping) else None

    def at(self, layer: int, *names: str) -> int | None:
        """Return a count of one layer, from a list with one value a layer or from a single number."""
        listed = self.numbers(*names)
        return listed[layer] if layer < len(listed) else None if listed else self.count(*names)


def most_layers(config: Mapping[str, object]) -> int:
    """Return the largest number of layers that a config has, for the model or for one of its parts."""
    own = [n for name in (*LAYERS, *DEPTH) if isinstance(n := config.get(name), int)]
    return max([*own, *(most_layers(v) for v in config.values() if isinstance(v, Mapping))], default=0)


def _words(value: object) -> tuple[str, ...]:
    listed = snapshot.listed(value)[:MOST_LAYERS]
    return tuple(listed) if all(isinstance(v, str) for v in listed) else ()


def _numbers(value: object) -> tuple[int, ...]:
    listed = snapshot.listed(value)[:MOST_LAYERS]
    numbers = [int(v) if isinstance(v, bool) else whole(v) for v in listed]
    return () if None in numbers else tuple(v for v in numbers if v is not None)


def whole(value: object) -> int | None:
    """Return a whole number from 0 to ``MOST``, or ``None``."""
    return snapshot.whole(int(value) if isinstance(value, float) and value.is_integer() else value, 0, MOST)


@cache
def _defaults() -> Mapping[str, Mapping[str, object]]:
    text = config.data("shape_defaults.json").read_text(encoding="utf-8")
    types = json.loads(text)["types"]
    return types if isinstance(types, dict) else {}
