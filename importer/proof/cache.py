"""A cache of proofs: template, vocabulary, engine version and cases determine a proof."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from importer import kept
from importer.chat_template.study import TemplateAnalysis
from importer.decisions.decision import Target
from importer.engines.install import environment
from importer.engines.tokens import Tokens
from importer.hub.folders import Folder
from importer.proof.result import FrontendPrompts, Proof, as_json, from_json
from importer.sandbox.codec import codec_of

Kept = TypeVar("Kept")
ROOT = Path(__file__).resolve().parents[1]
CODE = (
    "proof", "chat_template", "engines/parser_worker", "engines/rust_renderer.py", "engines/parsers.py",
)  # fmt: skip
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "tekken.json", "tokenizer.model")


def cached(
    analysis: TemplateAnalysis,
    tokens: Tokens,
    declared: bool,
    target: Target,
    python: Path,
    ask: Callable[[], Proof],
    *,
    derives: bool = False,
) -> Proof:
    """Return the cached proof, else the result of ``ask``, cached unless an accident has affected it.

    ``derives`` is whether ``ask`` derives a response template where no parser reads the calls.
    """
    key = _key(analysis, tokens, declared, target, python, derives=derives)
    path = kept.place("proofs", f"{key}.json")
    if (known := _read(path, Proof.from_json)) is not None:
        return known
    with kept.alone(path.name):  # several imports of one template prove it once
        if (known := _read(path, Proof.from_json)) is not None:
            return known
        proof = ask()
        if not proof.accidents:
            kept.write(path, proof.to_json())
    return proof


def cached_prompts(
    analysis: TemplateAnalysis,
    tokens: Tokens,
    target: Target,
    python: Path,
    programs: Sequence[Path],
    images: bool,
    ask: Callable[[], tuple[FrontendPrompts, ...]],
) -> tuple[FrontendPrompts, ...]:
    """Return the cached prompts, else the result of ``ask``, cached unless a frontend did not start.

    ``programs`` are the frontends that are files of their own; ``images`` is whether the model sees.
    """
    key = _key(analysis, tokens, True, target, python, derives=False)
    digest = hashlib.sha256(f"{key} {images}".encode())
    for program in programs:
        status = program.stat()
        digest.update(f"{program} {status.st_size} {status.st_mtime_ns}".encode())
    path = kept.place("prompts", f"{digest.hexdigest()}.json")
    parse: Callable[[Any], tuple[FrontendPrompts, ...]] = partial(from_json, tuple[FrontendPrompts, ...])
    if (known := _read(path, parse)) is not None:
        return known
    with kept.alone(path.name):
        if (known := _read(path, parse)) is not None:
            return known
        prompts = ask()
        if not any(one.failed is not None for one in prompts):
            kept.write(path, as_json(prompts))
    return prompts


def _read(path: Path, parse: Callable[[Any], Kept]) -> Kept | None:
    """Return what a file of the cache holds; ``None`` without one, or with one that is damaged."""
    try:
        return parse(kept.read(path))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _key(
    analysis: TemplateAnalysis, tokens: Tokens, declared: bool, target: Target, python: Path, *, derives: bool
) -> str:
    """Return the digest of all inputs of a proof, importer's code and the engine's environment among them."""
    parts = [_encoded(_Same(analysis)), json.dumps(asdict(tokens), default=str)]
    parts += [str(declared), target.backend, str(target.version)]
    parts += [str(target.frontend), str(derives), environment(python)]
    parts += [_code(), *_tokenizer(tokens.directory)]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


class _Same:
    """One object, equal to itself alone: a key for what cannot be hashed. It keeps the object alive."""

    def __init__(self, analysis: TemplateAnalysis) -> None:
        self.analysis = analysis

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.analysis is self.analysis

    def __hash__(self) -> int:
        return id(self.analysis)


@lru_cache(maxsize=256)
def _encoded(same: _Same) -> str:
    """Return the digest of an analysis."""
    text = json.dumps(codec_of(TemplateAnalysis).encode(same.analysis))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _tokenizer(directory: Path | None) -> Iterator[str]:
    """Yield size and time of the tokenizer's files: they may be replaced in place."""
    if directory is None:
        return
    with suppress(OSError), Folder(directory) as folder:
        for name in TOKENIZER:
            with suppress(OSError):
                status = folder.stat(name)
                yield f"{name} {status.st_size} {status.st_mtime_ns}"


@cache  # the code that runs was read at the start
def _code() -> str:
    digest = hashlib.sha256()
    for place in CODE:
        path = ROOT / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()
