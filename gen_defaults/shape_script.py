"""Runs in vLLM's environment, as a file: the defaults of transformers' configs, as JSON."""

import json
import sys
from dataclasses import fields, is_dataclass
from typing import Any


def main() -> None:
    """Print the declared defaults: values that a class derives from other keys are no defaults."""
    import transformers
    from transformers import CONFIG_MAPPING

    keys = set(sys.argv[1:])
    types = {}
    for name in CONFIG_MAPPING:
        cls = CONFIG_MAPPING[name]
        values = declared(cls, keys)
        if WORDS & set(values):
            pattern = repeating(cls)
            types[name] = values | ({"layer_pattern": pattern} if pattern else {})
        for part in TOWERS:
            inner = (getattr(cls, "sub_configs", None) or {}).get(part)
            if is_dataclass(inner) and (part_values := declared(inner, keys)):
                types[f"{name}/{part}"] = part_values
    sys.stdout.write(json.dumps({"transformers": transformers.__version__, "types": types}))


LONGEST = 12  # a longer list is one model's own, not a pattern
WORDS = {"vocab_size", "n_vocab"}  # keys of a language model
TOWERS = ("vision_config", "audio_config")


def declared(cls: Any, keys: set[str]) -> dict[str, object]:
    """Return the wanted fields that the class gives a value to."""
    defaults = {f.name: f.default for f in fields(cls)} if is_dataclass(cls) else {}
    return {k: v for k, v in sorted(defaults.items()) if k in keys and isinstance(v, int | float | str)}


def repeating(cls: Any) -> list[str]:
    """Return the kinds of layer that the class repeats where a config lists none; empty where all are the
    same.
    """
    try:
        listed = cls().layer_types
    except Exception:
        return []
    if not listed or len(set(listed)) == 1:
        return []
    period = next(
        p for p in range(1, len(listed) + 1) if all(k == listed[i % p] for i, k in enumerate(listed))
    )
    return list(listed[:period]) if period <= LONGEST else []


if __name__ == "__main__":
    main()
