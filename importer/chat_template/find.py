"""The chat template that an engine's loader takes from a repository, for requests with tools and without.

transformers has two loaders, each of which opens its own files (5.19, ``tokenization_utils_base.py`` and
``processing_utils.py``); an engine takes the template of one of them, by the request.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from importer.chat_template.loader import ANY, Loader, Opener
from importer.errors import RepositoryError
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot
from importer.reasons import Fields, Reason, ReasonKind

MAX_CHARACTERS = 1_000_000  # the longest real template known has 70,000
DEFAULT = "default"
TOOL_USE = "tool_use"
SIDECAR = "chat_template.jinja"
FOLDER = "additional_chat_templates"
REPOSITORY = "repository:"  # before the name of a template of the repository's own set
CONFIG = "tokenizer_config.json"
PROCESSOR_CONFIG = "processor_config.json"
LEGACY = "chat_template.json"
IN_CODE = "chat_template_type"
HUB = "the Hub's API"
# A processor is made where the repository has its settings, or its config other inputs than text.
PROCESSORS = (PROCESSOR_CONFIG, "preprocessor_config.json", "video_preprocessor_config.json")
INPUTS = ("vision_config", "audio_config")


# vLLM's answer (``safe_apply_chat_template``) to requests with tools where only the processor has a template.
REFUSAL = (
    "As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat "
    "template if the tokenizer does not define one."
)
# transformers' answer (``get_chat_template``) to a request for which a set of templates has none.
NO_DEFAULT = "This model has multiple chat templates with no default specified!"


def _unopened(fields: Fields) -> str:
    """The engine's loader of this model never reads {file}: {refuses}; {offer} would be used."""
    left = "every conversation is refused" if fields["refuses"] else "the model gets plain text without tools"
    return (
        f"the chat template stands in {fields['file']}, that the engine's loader never reads for this model, "
        f"so {left}; {fields['offer']} would be used"
    )


def is_of_text(reason: Reason) -> bool:
    """Return whether the fault is void for an engine that renders by its own code."""
    inner = reason.fields.get("reason", reason)
    return (
        isinstance(inner, Reason)
        and isinstance(inner.kind, TemplateFault)
        and inner.kind is not TemplateFault.ENTRY
    )


class TemplateFault(ReasonKind):
    """What an engine makes of a template that is none, or that its loader does not open."""

    ENTRY = (
        "{file} has a list of chat templates with an entry that lacks its name or its template; no "
        "engine loads this tokenizer"
    )
    NOT_TEXT = "the chat template in {file} is not text; engines refuse every conversation"
    MISSING = (
        "no file has a chat template, so {engine} refuses every chat or makes up a prompt; add the chat "
        "template of the original model"
    )
    EMPTY = "the chat template in {file} is empty, and engines use it in place of any other"
    UNOPENED = (_unopened,)
    UNOPENED_TOOLS = (
        "the engine reads the chat template in {file} for requests without tools alone, so that requests "
        "with tools are refused; {offer} would serve both"
    )
    OFFERED = "the template {template}"


@frozen
class Template:
    """A chat template.

    ``text``    of the template for requests with tools.
    ``source``  its file; ``name`` its name in the file.
    ``all``     every name of its set.
    ``plain``   text of the template for requests without tools, where it differs.
    """

    text: str
    source: str
    name: str = DEFAULT
    all: tuple[str, ...] = (DEFAULT,)
    plain: str = ""

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the texts, hexadecimal."""
        return hashlib.sha256(f"{self.text}{self.plain}".encode("utf-8", "surrogatepass")).hexdigest()


def named(snapshot: Snapshot, loader: Loader = ANY) -> dict[str, str]:
    """Return the repository's templates by name, those that the loader takes first.

    Another text under a name that is taken has the name of its file.
    """
    texts: dict[str, str] = {}
    taken = (one for openers in (loader.tools, loader.plain) for one in _taken(snapshot, openers).items())
    found = [(name, text, source) for name, (text, source) in taken]
    for name, text, source in (*found, *_every(snapshot)):
        if text not in texts.values() and len(text) <= MAX_CHARACTERS:
            texts[name if name not in texts else source] = text
    return texts


def find(snapshot: Snapshot, loader: Loader = ANY) -> Template | None:
    """Return the template for requests with tools: ``tool_use`` of a named set, else ``default``.

    Where the loader takes none for these requests alone, the text refuses them as the engine does. Raises
    RepositoryError("broken-json") for a file that is not valid JSON, and RepositoryError("too-large") past a
    million characters.
    """
    tools, plain = _taken(snapshot, loader.tools), _taken(snapshot, loader.plain)
    if not plain and not tools:
        return None
    for text, source in (*tools.values(), *plain.values()):
        if len(text) > MAX_CHARACTERS:
            limit = f"{MAX_CHARACTERS:,} characters of a template"
            raise RepositoryError("too-large", file=source, repo=snapshot.label, limit=limit)
    names = tuple(sorted({*tools, *plain}))
    if not tools:
        text, source = plain[_first(plain, DEFAULT)]
        return Template(_refusing(REFUSAL), source, DEFAULT, names, text)
    name = _first(tools, TOOL_USE, DEFAULT)
    text, source = tools[name]
    other = plain[DEFAULT][0] if DEFAULT in plain else _refusing(NO_DEFAULT) if plain else ""
    return Template(text, source, name, names, "" if other == text else other)


def _refusing(words: str) -> str:
    return f"{{{{ raise_exception({words!r}) }}}}"


def _first(templates: Mapping[str, object], *names: str) -> str:
    return next((name for name in names if name in templates), next(iter(templates)))


def others(snapshot: Snapshot, template: Template) -> tuple[str, ...]:
    """Return the files with another text under the names of ``template``; another loader reads them.

    mlx-lm 0.32 has templates in code, too, and takes the one that ``chat_template_type`` names.
    """
    served = {t.strip() for t in (template.text, template.plain or template.text)}
    texts = [
        source
        for name, text, source in _every(snapshot)
        if name in (template.name, DEFAULT) and text.strip() not in served
    ]
    texts += [CONFIG] if snapshot.json(CONFIG).get(IN_CODE) else []
    return tuple(dict.fromkeys(texts))


def fault(snapshot: Snapshot, loader: Loader = ANY) -> Reason | None:
    """Return what is wrong with the template that the loader reads; ``None`` for a sound one, or none.

    ``chat_template.jinja`` replaces the others, also where it is empty (transformers 5.19).
    """
    sidecar = SIDECAR, snapshot.texts.get(SIDECAR)
    for opener in dict.fromkeys((*loader.tools, *loader.plain)):
        if opener is Opener.PROCESSOR and not has_processor(snapshot):
            continue
        keys = [(path, snapshot.json(path).get(KEY)) for path in KEYS[opener]]
        places: list[tuple[str, Any]] = [*keys, sidecar] if opener is Opener.PROCESSOR else [sidecar, *keys]
        file, value = next(((file, value) for file, value in places if value is not None), ("", None))
        if value is not None:
            kind = _fault(value)
            return None if kind is None else Reason(kind, file=file)
    return None


def unopened(snapshot: Snapshot, loader: Loader) -> Reason | None:
    """Return the reason where the loader takes no template though a file has one; ``None`` else."""
    tools, plain = _taken(snapshot, loader.tools), _taken(snapshot, loader.plain)
    found = [(name, source) for name, _, source in _every(snapshot)]
    if tools or not found:
        return None
    kind = TemplateFault.UNOPENED_TOOLS if plain else TemplateFault.UNOPENED
    offer = Reason(TemplateFault.OFFERED, template=f"{REPOSITORY}{found[0][0]}")
    return Reason(kind, file=found[0][1], refuses=loader.refuses, offer=offer)


def _fault(value: Any) -> TemplateFault | None:
    if isinstance(value, list):
        if not all(isinstance(item, Mapping) and {"name", "template"} <= item.keys() for item in value):
            return TemplateFault.ENTRY
        texts = [text for item in value for text in (item["name"], item["template"])]
    else:
        texts = [*value.values()] if isinstance(value, Mapping) else [] if value is None else [value]
    if not all(isinstance(text, str) for text in texts):
        return TemplateFault.NOT_TEXT
    return None if value is None or any(text.strip() for text in texts) else TemplateFault.EMPTY


KEY = "chat_template"
KEYS: Mapping[Opener, tuple[str, ...]] = {
    Opener.TOKENIZER: (CONFIG,),
    Opener.PROCESSOR: (PROCESSOR_CONFIG, LEGACY),
    Opener.ANY: (CONFIG, LEGACY, PROCESSOR_CONFIG),
}


def has_processor(snapshot: Snapshot) -> bool:
    """Return whether transformers makes a processor for the model, and no tokenizer alone."""
    settings = any(snapshot.has(path) or path in snapshot.texts for path in PROCESSORS)
    return settings or any(snapshot.json("config.json").get(key) for key in INPUTS)


def _taken(snapshot: Snapshot, openers: tuple[Opener, ...]) -> dict[str, tuple[str, str]]:
    """Return text and file of each template by name, of the first loader that has any."""
    for opener in openers:
        found = {name: (text, source) for name, text, source in _places(snapshot, opener)}
        if found:
            return found
    return {}


def _places(snapshot: Snapshot, opener: Opener) -> Iterator[tuple[str, str, str]]:
    """Yield name, text and file of each template that a loader takes.

    The first place with a template replaces the others: for a processor its keys, else the files. Of a named
    set, a processor takes ``default`` alone.
    """
    if opener is Opener.PROCESSOR and not has_processor(snapshot):
        return
    place = next((place for place in _in_order(snapshot, opener) if place), ())
    yield from (one for one in place if opener is not Opener.PROCESSOR or one[0] == DEFAULT)


def _every(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    """Yield name, text and file of each template of the repository."""
    for place in _in_order(snapshot, Opener.ANY):
        yield from place


def _in_order(snapshot: Snapshot, opener: Opener) -> Iterator[list[tuple[str, str, str]]]:
    """Yield the templates of each place that a loader opens."""
    keys = [
        [(name, text, path) for name, text in _named(snapshot.json(path).get(KEY))] for path in KEYS[opener]
    ]
    files = [*_files(snapshot)]
    yield from [*keys, files] if opener is Opener.PROCESSOR else [files, *keys]
    if opener is not Opener.PROCESSOR and CONFIG not in snapshot.texts:
        yield [(name, text, HUB) for name, text in _named(snapshot.info.get(KEY))]


def _files(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    """Yield name, text and path of the files that hold nothing but a template."""
    sidecar = snapshot.texts.get(SIDECAR, "")
    if sidecar.strip():
        yield DEFAULT, sidecar, SIDECAR
    for path, text in sorted(snapshot.texts.items()):
        place = PurePosixPath(path)
        if place.parent.name == FOLDER and place.suffix == ".jinja" and text.strip():
            yield place.stem, text, path


def _named(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the templates under a ``chat_template`` key: a text, a list of named ones, or a mapping."""
    if isinstance(value, str) and value.strip():
        yield DEFAULT, value
    elif isinstance(value, Mapping):
        yield from (
            (n, t) for n, t in value.items() if isinstance(n, str) and isinstance(t, str) and t.strip()
        )
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, Mapping) and isinstance(item.get("name"), str):
                yield from _named({item["name"]: item.get("template")})
