"""vLLM's recipes as one book: the facts of each recipe, the hardware profiles, the strategies.

A book comes from ``gen_defaults/upstream/vllm-recipes.json``, that the source ``vllm-recipes`` writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gen_defaults.place import Place, load

NAME = "vllm-recipes"
BASELINE = "single_node_tp"  # the strategy of a recipe that names none
# Profiles by the architecture of their cards: recipes name either.
ARCHITECTURES = {
    "arch:sm90": ("h100", "h200"),
    "arch:sm100": ("b200", "gb200"),
    "arch:sm103": ("b300", "gb300", "dgx_station_gb300"),
    "arch:gfx942": ("mi300x", "mi325x"),
    "arch:gfx950": ("mi350x", "mi355x"),
}


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of node; ``gb`` is the memory of one of its ``count`` cards, in GB as the recipes have it."""

    name: str
    brand: str
    generation: str
    count: int
    gb: float
    scalable: bool = True
    restricted: bool = False

    @classmethod
    def of(cls, name: str, row: Mapping[str, Any]) -> Profile:
        """Return the profile of a row of the taxonomy."""
        count = int(row.get("gpu_count") or 1)
        return cls(
            name,
            str(row.get("brand", "")),
            str(row.get("generation", "")),
            count,
            float(row.get("vram_gb") or 0) / count,
            row.get("scalable") is not False,
            row.get("restricted") is True,
        )

    def value(self, table: Any) -> Any:
        """Return the entry of a map by hardware: that of the name, the generation, the brand, ``default``."""
        if not isinstance(table, Mapping):
            return None
        keys = (self.name, self.generation, self.brand.lower(), "default")
        return next((table[key] for key in keys if table.get(key) is not None), None)

    def override(self, table: Any) -> Mapping[str, Any]:
        """Return the entry for the generation, else that for all of NVIDIA's; empty where there is none."""
        if not isinstance(table, Mapping):
            return {}
        brand = table.get("nvidia") if self.brand == "NVIDIA" else None
        return table.get(self.generation) or brand or {}


@dataclass(frozen=True, slots=True)
class Book:
    """Recipes by their path, hardware profiles and strategies by name."""

    recipes: Mapping[str, Mapping[str, Any]]
    profiles: Mapping[str, Profile]
    strategies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Book:
        """Return the book of the file's data."""
        profiles = {name: Profile.of(name, row) for name, row in data.get("hardware", {}).items()}
        return cls(data.get("recipes", {}), profiles, data.get("strategies", {}))

    @classmethod
    def shipped(cls, place: Place | None = None) -> Book:
        """Return the book of the checkout; raises ValueError for a file that cannot be read."""
        return cls.of(load((place or Place()).upstream(NAME)))

    def variants(self) -> Iterator[tuple[str, Mapping[str, Any], str, Mapping[str, Any], str]]:
        """Yield each recipe's name and facts with each variant's name, facts and model id."""
        for name, recipe in self.recipes.items():
            base = str(recipe.get("model", {}).get("model_id") or name)
            for variant, facts in (recipe.get("variants") or {"default": {}}).items():
                yield name, recipe, variant, facts, str(facts.get("model_id") or base)

    def hardware(self, recipe: Mapping[str, Any], variant: Mapping[str, Any]) -> list[Profile]:
        """Return the profiles that a recipe has verified, else the one that its site starts with."""
        stated = recipe.get("meta", {}).get("hardware", {})
        names = [name for name, state in stated.items() if state == "verified"]
        fitting = [p for n in names if (p := self.profiles.get(n)) and _allowed(p, variant)]
        if fitting:
            return fitting
        default = self._default(recipe, variant)
        return [default] if default is not None else []

    def _default(self, recipe: Mapping[str, Any], variant: Mapping[str, Any]) -> Profile | None:
        stated = recipe.get("meta", {}).get("hardware", {})
        usable = {
            name: profile
            for name, profile in self.profiles.items()
            if stated.get(name) != "unsupported"
            and _allowed(profile, variant)
            and (not profile.restricted or name in stated)
        }
        wanted = (recipe.get("meta", {}).get("default_hardware"), "h200", "b200", "gb200", *usable)
        return next((usable[name] for name in wanted if name in usable), None)


def _allowed(profile: Profile, variant: Mapping[str, Any]) -> bool:
    """Return whether a variant runs here: its list of hardware, its precision (FP4 needs Blackwell),
    and its memory where no further node can be added.
    """
    listed = variant.get("supported_hardware") or ()
    only = {name for entry in listed for name in ARCHITECTURES.get(entry, (entry,))}
    if only and profile.name not in only:
        return False
    if not profile.scalable and float(variant.get("vram_minimum_gb") or 0) > profile.gb * profile.count:
        return False
    needed = variant.get("precision_hardware")
    if needed is None and variant.get("precision") in {"nvfp4", "fp4"}:
        needed = {"brand": "NVIDIA", "generation": "blackwell"}
    pairs = (needed or {}).items()
    return all(getattr(profile, key, value) == value for key, value in pairs)
