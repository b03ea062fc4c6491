"""Trial starts: an engine that ended for no known cause is started again without settings, to name one."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from importer.document import argument_check, environment
from importer.document.document import Document, document_of
from importer.engines import model_folder, registries
from importer.engines.deaths import CONFIGURATION, ENGINE, ENVIRONMENT, Attribution, DeathCause, Died
from importer.engines.lacking import Lacking
from importer.engines.model_folder import CONFIG, ROPE, default_base
from importer.frozen import frozen
from importer.hub.snapshot import mapping
from importer.launcher import SECRET
from importer.progress import Progress
from importer.reasons import Reason, ReasonKind

SECONDS = 240.0  # for all trial starts after one failed start
LONGEST = 80  # characters of a value in a reason
# Ends whose cause no pattern tells, or that a variable may have.
UNTOLD = frozenset({Died.LAST_WORDS, Died.SILENT, Died.PYTHON_FAILS, Died.NO_MODULE, Lacking.WRITABLE_FOLDER})
# Ends of an engine that another model tells apart: the engine's doing, or that of the model's files.
UNPLACED = frozenset({Died.LAST_WORDS, Died.SILENT})
# Keys of a document that belong to the engine and not to the model.
OF_ENGINE = ("name", "backend", "importer")
VARIABLES = "chat_template_kwargs"
# Keys of config.json that scale what is computed, or say how weights are packed, and that a family of models
# does without. Weights that are packed do not load without their key.
SCALES = (
    "rope_scaling", "sliding_window", "partial_rotary_factor", "attn_logit_softcapping",
    "final_logit_softcapping", "logits_scaling", "logit_scale", "attention_multiplier",
    "embedding_multiplier", "residual_multiplier", "quantization_config", "quantization",
)  # fmt: skip
# Keys of a document with settings that a start may go without.
KEYS = (environment.KEY, argument_check.KEY, VARIABLES)
# Variables that every process needs.
NEEDED = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "SYSTEMROOT"})


class StartSetting(ReasonKind):
    """A setting of a start, with its name and value."""

    OF_DOCUMENT = "{key}.{name} ({value}) of the document"
    OF_MACHINE = "the variable {name} ({value}) of its environment"
    OF_MODEL = "{name} ({value}) in {key}"


@frozen
class Setup:
    """One setting of a start.

    ``key``  the document's key that has it, or ``config.json``; ``None`` for a variable of the machine.
    """

    key: str | None
    name: str
    value: str

    @property
    def attribution(self) -> Attribution:
        """Return the part that sets it."""
        return ENVIRONMENT if self.key is None else CONFIGURATION

    @property
    def reason(self) -> Reason:
        """Return the setting in words, without a secret value."""
        value = "…" if SECRET.search(self.name) else self.value[:LONGEST]
        if self.key is None:
            return Reason(StartSetting.OF_MACHINE, name=self.name, value=value)
        if self.key == CONFIG:
            return Reason(StartSetting.OF_MODEL, key=self.key, name=self.name, value=value)
        return Reason(StartSetting.OF_DOCUMENT, key=self.key, name=self.name, value=value)


Starts = Callable[[Collection[Setup], float], bool]


def of_document(document: Document) -> tuple[Setup, ...]:
    """Return the settings of a document that a start may go without."""
    return tuple(
        Setup(key, str(name), str(value))
        for key in KEYS
        if isinstance(settings := document.get(key), Mapping)
        for name, value in settings.items()
    )


def of_machine(variables: Mapping[str, str], document: Collection[Setup]) -> tuple[Setup, ...]:
    """Return the variables of a process that neither it needs nor the document sets."""
    own = {one.name for one in document if one.key == environment.KEY}
    return tuple(Setup(None, n, v) for n, v in variables.items() if n not in NEEDED and n not in own)


def of_model(model_dir: Path) -> tuple[Setup, ...]:
    """Return the settings of ``config.json`` that a start may go without."""
    settings = model_folder.config_of(model_dir)
    named = (name for name in SCALES if settings.get(name) is not None)
    rope = [name for name in ROPE if settings.get(name) not in (None, default_base(settings.get(name)))]
    return tuple(Setup(CONFIG, name, str(settings[name])) for name in (*named, *rope[:1]))


def stretched(model_dir: Path) -> Setup | None:
    """Return the scaling of positions in ``config.json`` beyond the length beside it; ``None`` without one.

    Who trains a model with a scaling writes the longer length. Cards tell users to add one for long texts.
    """
    settings = model_folder.config_of(model_dir)
    longest = settings.get("max_position_embeddings")
    for key in ("rope_scaling", "rope_parameters"):
        rope = mapping(settings.get(key))
        numbers = (longest, rope.get("original_max_position_embeddings"), rope.get("factor"))
        here, own, factor = (float(n) if isinstance(n, int | float) else 0.0 for n in numbers)
        if here and own * factor > here:
            return Setup(CONFIG, key, str(dict(rope)))
    return None


def scales(settings: Collection[Setup]) -> set[str]:
    """Return the keys of ``config.json`` among settings."""
    return {one.name for one in settings if one.key == CONFIG}


def without(document: Document, left_out: Collection[Setup]) -> Document:
    """Return the document without these settings."""
    changed: dict[str, object] = {**document}
    for key in {one.key for one in left_out if one.key in KEYS}:
        names = {one.name for one in left_out if one.key == key}
        if isinstance(settings := changed[key], Mapping):
            changed[key] = {n: v for n, v in settings.items() if str(n) not in names}
    return document_of(changed)


def of_engine(document: Document) -> Document:
    """Return the document without what belongs to its model."""
    return document_of({key: value for key, value in document.items() if key in OF_ENGINE})


def half_installed(cause: DeathCause, engine: str) -> DeathCause:
    """Return the cause of an end without a parser; the environment where the engine's release has it."""
    parser = str(cause.reason.fields["parser"])
    if not registries.load(engine).has("tool", parser):
        return cause
    return DeathCause(Reason(Died.NO_MODULE, module=parser), ENVIRONMENT)


def held(cause: DeathCause, holders: Sequence[str]) -> DeathCause:
    """Return the cause of an end over the memory of a card, with the programs that hold some of it."""
    if not holders:
        return cause
    return DeathCause(Reason(Died.CARD_HELD, problem=cause.reason, held=tuple(holders)), cause.attribution)


def with_another_model(cause: DeathCause, starts: Callable[[], bool], report: Progress) -> DeathCause:
    """Return the cause of an end; the model's files where the engine starts with another model.

    ``starts``  whether it does.
    """
    if cause.reason.kind not in UNPLACED or cause.attribution != ENGINE:
        return cause
    report("it did not start: trying another model")
    if not starts():
        return cause
    return DeathCause(Reason(Died.OWN_FILES, problem=cause.reason), CONFIGURATION)


def blamed(
    cause: DeathCause, groups: Sequence[Sequence[Setup]], log: str, starts: Starts, report: Progress
) -> DeathCause:
    """Return the cause of an end; the setting without which the engine starts, where there is one.

    ``groups``  the settings, each group tried before the next. ``log``  is searched for their names.
    ``starts``  whether a start without these settings succeeds within so many seconds.
    """
    deadline = time.monotonic() + SECONDS
    for group in groups:
        one = culprit(_likely_first(group, log), starts, deadline, report)
        if one is not None:
            reason = Reason(Died.SETTING, problem=cause.reason, setting=one.reason)
            return DeathCause(reason, one.attribution)
    return cause


def culprit(settings: Sequence[Setup], starts: Starts, deadline: float, report: Progress) -> Setup | None:
    """Return the one setting without which ``starts`` is true; ``None`` if none alone has that effect.

    By halves: the first start goes without all of them. No start begins after ``deadline``.
    """

    def tried(left_out: Sequence[Setup]) -> bool:
        left = deadline - time.monotonic()
        report(f"trying without {', '.join(_names(left_out))}, {max(left, 0):.0f} s at most")
        return left > 0 and starts(left_out, left)

    if not settings or not tried(settings):
        return None
    kept, shown = list(settings), len(settings) == 1
    while len(kept) > 1 and time.monotonic() < deadline:
        half = kept[: len(kept) // 2]
        shown = tried(half)
        kept = half if shown else kept[len(half) :]
    return kept[0] if len(kept) == 1 and (shown or tried(kept)) else None


def _likely_first(settings: Sequence[Setup], log: str) -> list[Setup]:
    """Return the settings, those that the log names before the others."""
    return sorted(settings, key=lambda one: one.name not in log)


def _names(settings: Sequence[Setup]) -> Iterator[str]:
    """Yield some names of settings, and the number of the others."""
    yield from (one.name for one in settings[:3])
    if len(settings) > 3:
        yield f"{len(settings) - 3} more"
