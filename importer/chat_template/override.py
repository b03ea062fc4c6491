"""The override of a model's own template: one of importer's conventions, or a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from importer.chat_template.conventions import AS_WRITTEN, CONVENTIONS, FILE, NONE, OWN_CALLS
from importer.chat_template.find import MAX_CHARACTERS, REPOSITORY, Template
from importer.chat_template.vocabulary import Vocabulary
from importer.errors import Setting, UsageError
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind

if TYPE_CHECKING:
    from importer.chat_template.render import Renders

Spelling = tuple[tuple[str, str], ...]  # each mark of a template with the one in its place


class OverrideReason(ReasonKind):
    """Reasons why a template cannot replace the model's own."""

    CHARACTERS = "it holds characters that no file of text has"
    NOTHING_TO_DRESS = "the model has no chat template of its own whose turns could be kept; give a file"
    NOT_OBSERVED = "no validation of this document has seen the model write calls in marks of its own"
    NO_FILE = "file not found; known names: {known}"
    NO_NAME = "the repository has no template of that name; it has {known}"
    UNREADABLE = "the file cannot be read ({problem})"
    SIZE = "a template has 1 to {limit:,} characters"


@frozen
class TemplateOverride:
    """The override of a template.

    ``name``    of a convention, ``own-calls``, ``as-written``, ``repository:NAME``, ``file``, or ``none`` to
                remove the override of an earlier import.
    ``source``  the convention, or the path of the file; ``text`` the file's content.
    ``spelling``  of ``as-written``, as the last validation observed it.
    """

    name: str
    source: str
    text: str = ""
    spelling: Spelling = ()

    @property
    def word(self) -> str:
        """Return the value of the option: the name or the path."""
        return self.source if self.name == FILE else self.name

    def spelled(self, forms: Iterable[Mapping[str, Any]]) -> TemplateOverride:
        """Return ``as-written`` with the marks that a validation observed; any other as it is."""
        seen: Mapping[str, str] = next(
            (form["spelling"] for form in forms if form["template"] == self.name == AS_WRITTEN), {}
        )
        return replace(self, spelling=tuple(seen.items())) if seen else self

    @property
    def vendors(self) -> bool:
        """Return whether it is a template of the repository, so that a proof shows the model's own form."""
        return self.name.startswith(REPOSITORY)


def is_name(word: str) -> bool:
    """Return whether the value of the option names a template, and no file."""
    return word in (NONE, OWN_CALLS, AS_WRITTEN) or word in CONVENTIONS or word.startswith(REPOSITORY)


def by_name(name: str) -> TemplateOverride:
    """Return the override by a name: a convention, one of the repository's templates, or ``none``."""
    if name.startswith(REPOSITORY):
        return TemplateOverride(name, f"the repository's template {name.removeprefix(REPOSITORY)}")
    if name == AS_WRITTEN:
        return TemplateOverride(name, "the model's own template, with calls as the model writes them")
    return TemplateOverride(name, f"the convention {name}")


def read(word: str | None) -> TemplateOverride | None:
    """Return the override by a name or a file, ``None`` without a value.

    Raises UsageError("bad-value").
    """
    if word is None:
        return None
    if is_name(word):
        return by_name(word)
    text = _file(word)
    if not text.strip() or len(text) > MAX_CHARACTERS:
        raise _refused(word, Reason(OverrideReason.SIZE, limit=MAX_CHARACTERS))
    return TemplateOverride(FILE, str(Path(word).absolute()), text)


def again(word: str | None, text: str | None) -> TemplateOverride | None:
    """Return the override of an earlier import; ``text`` is the template file beside its document."""
    if word is None or (not is_name(word) and text is None):
        return None
    return by_name(word) if is_name(word) else TemplateOverride(FILE, word, text or "")


def template_of(
    override: TemplateOverride,
    own: Template | None,
    vocabulary: Vocabulary,
    renderer: Renders,
    named: Mapping[str, str] | None = None,
) -> Template:
    """Return the template to serve with; ``named`` holds the repository's set by name.

    Raises UsageError("bad-value") where the convention cannot wrap the model's own template.
    """
    from importer.chat_template.conventions.wrap import offer_own_calls, wrap

    if override.name == FILE:
        text = override.text
    elif override.vendors:
        known = {f"{REPOSITORY}{name}": text for name, text in (named or {}).items()}
        if override.name not in known:
            raise _refused(override.name, Reason(OverrideReason.NO_NAME, known=tuple(known)))
        text = known[override.name]
    elif own is None:
        raise _refused(override.name, Reason(OverrideReason.NOTHING_TO_DRESS))
    elif override.name == AS_WRITTEN:
        text = respelled(own.text, override.spelling)
        if text == own.text:
            raise _refused(override.name, Reason(OverrideReason.NOT_OBSERVED))
    elif override.name == OWN_CALLS:
        text = offer_own_calls(own, vocabulary, renderer)
    else:
        text = wrap(own, override.name, vocabulary, renderer)
    if any(char == "\0" or "\ud800" <= char <= "\udfff" for char in text):
        raise _refused(override.word, Reason(OverrideReason.CHARACTERS))
    return Template(text, override.source)


def respelled(text: str, spelling: Spelling) -> str:
    """Return a template with other marks around its calls, in its instructions as in its turns."""
    for mark, written in spelling:
        text = text.replace(mark, written)
    return text


def _file(word: str) -> str:
    path = Path(word)
    try:
        if not path.is_file():
            known = (*CONVENTIONS, OWN_CALLS, AS_WRITTEN, NONE)
            raise _refused(word, Reason(OverrideReason.NO_FILE, known=known))
        with path.open(encoding="utf-8") as file:
            return file.read(MAX_CHARACTERS + 1)
    except UnicodeDecodeError:
        raise _refused(word, Reason(OverrideReason.CHARACTERS)) from None
    except OSError as error:
        raise _refused(word, Reason(OverrideReason.UNREADABLE, problem=error.strerror)) from None


def _refused(word: str, problem: Reason) -> UsageError:
    return UsageError("bad-value", setting=Setting.TEMPLATE, value=word, problem=problem)
