"""The request of an import: its options as they were read, on top of those of earlier imports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Any

from importer import backends, config
from importer.app.preferences import parse, recalled
from importer.app.request import KEPT, OPTIONS, RULED, ImportOptions
from importer.app.target import parse_device
from importer.chat_template import override
from importer.chat_template.conventions import NONE
from importer.chat_template.override import TemplateOverride
from importer.decisions.decision import Frontend, Preferences
from importer.document.document_keys import frontend_of
from importer.document.name_allocator import Slot
from importer.document.store import StoredDocument
from importer.frozen import frozen
from importer.memory.plans import Aim, Goal, aim


@frozen
class ImportRequest:
    """A reference with the options as they were read; ``memory`` in bytes.

    ``measured``  the last start with random weights, as ``Measured.to_json`` returns it.
    ``observed``  the forms of calls that a validation tried, as ``CallForm.to_json`` returns them.
    """

    reference: str
    revision: str | None = None
    name: str | None = None
    preferences: Preferences = field(default_factory=Preferences)
    engine_version: str | None = None
    offline: bool = False
    ignore_name: bool = False
    device: str | None = None
    memory: int | None = None
    exact_fit: bool = False
    template: TemplateOverride | None = None
    frontend: Frontend | None = None
    goal: Goal | None = None
    concurrency: int | None = None
    context: int | None = None
    per_device: bool = False
    adapter: Sequence[str] = ()
    measured: Mapping[str, Any] | None = None
    observed: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of(cls, reference: str, options: ImportOptions) -> ImportRequest:
        """Return the request of a reference with options; an option without a reader is taken unread.

        Raises UsageError for an invalid value, TypeError for an option that is not declared.
        """
        given: dict[str, Any] = dict(options)
        aim(given.get("goal"), given.get("concurrency"), given.get("context"))
        device, memory = parse_device(
            given.pop("device", None), given.pop("memory", None), per_device=given.get("per_device", False)
        )
        preferences = parse(
            given.pop("settings", None), given.pop("backend", None), given.pop("unset", ()), KEPT
        )
        template = override.read(given.pop("template", None))
        return cls(
            reference, preferences=preferences, device=device, memory=memory, template=template, **given
        )

    @property
    def slot(self) -> Slot:
        """Return the place among the model's documents."""
        return Slot(self.backend, self.device, self.per_device)

    @property
    def aim(self) -> Aim:
        """Return what the deployment is for."""
        return Aim(self.goal, self.concurrency, self.context)

    @property
    def for_device(self) -> str | None:
        """Return the device of the document: the named one, else that of the settings, if there is any."""
        return self.device or config.default("device")

    @property
    def full_preferences(self) -> Preferences:
        """Return the preferences with the name of their template."""
        foreign = self.template is not None and not self.template.vendors
        return replace(self.preferences, template=self.template.name if self.template and foreign else None)

    @property
    def backend(self) -> str | None:
        """Return the backend that the user names; ``None`` where that is left open."""
        named = self.preferences.values.get("backend")
        return None if named is None else str(named)

    def to_json(self) -> dict[str, object]:
        """Return the request for a receipt, without the options of one run."""
        own = {f.name for f in fields(self)} - {o.name for o in OPTIONS.values() if not o.recorded}
        members = {f.name: getattr(self, f.name) for f in fields(self) if f.name in own}
        template = None if self.template is None else self.template.word
        return members | {"preferences": dict(self.preferences.values), "template": template}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, offline: bool = False) -> ImportRequest:
        """Return the request that ``to_json`` gave, without its template: ``after`` adds the document's."""
        known = {f.name: data[f.name] for f in fields(cls) if f.name in data and f.name != "template"}
        return cls(**known | {"preferences": Preferences(data.get("preferences", {})), "offline": offline})

    def after(self, stored: StoredDocument | None) -> ImportRequest:
        """Return the request on top of the document's earlier ones.

        Raises DocumentError("chat-template") where a template is to stay that is no longer whole.
        """
        receipt = None if stored is None else stored.receipt
        earlier = {} if receipt is None else receipt.request
        template, word = self.template, earlier.get("template")
        if template is None and stored is not None and word is not None:
            beside = None if override.is_name(word) else stored.chat_template()
            template = override.again(word, None if beside is None else beside.text)
        if template is not None and template.name == NONE:
            template = None
        kept = {name: earlier[name] for name in self._open() if name in earlier}
        kept |= {"measured": self.measured or earlier.get("measured")}
        runs = () if receipt is None else (receipt.validation or {}, receipt.partial or {}, earlier)
        kept["observed"] = next((run["observed"] for run in runs if run.get("observed")), ())
        if template is not None:
            template = template.spelled(kept["observed"])
        return replace(
            self, preferences=recalled(self.preferences, stored), template=template,
            frontend=self._frontend(stored, earlier), **self._devices(earlier), **kept,
        )  # fmt: skip

    def added(self, typed: ImportRequest) -> dict[str, object]:
        """Return what this request has from an earlier import, beyond the ``typed`` one; no template."""
        values = self.preferences.values
        found = {key: value for key, value in values.items() if key not in typed.preferences.values}
        devices = ("device", "memory") if (typed.device, typed.memory) == (None, None) else ()
        own = {name: getattr(self, name) for name in (*devices, *typed._open())}
        return found | {name: value for name, value in own.items() if value}

    def _open(self) -> list[str]:
        """Return the options without a value that an earlier import may give."""
        names = (name for name in KEPT if name not in (*RULED, *self.preferences.unset))
        return [name for name in names if not getattr(self, name)]

    def _devices(self, earlier: Mapping[str, object]) -> dict[str, Any]:
        """Return device and memory: the requested ones, else the last ones. One device alone stays so."""
        if "device" in self.preferences.unset:
            return {}
        alone, last = self.per_device or bool(earlier.get("per_device")), earlier.get("device")
        if self.device is not None or self.memory is not None:
            return {"device": self.device or (last if alone else None), "per_device": alone}
        return {"device": last, "memory": earlier.get("memory"), "per_device": alone}

    def _frontend(self, stored: StoredDocument | None, earlier: Mapping[str, Any]) -> Frontend | None:
        """Return the requested frontend, else the one in the file, else that of the last import."""
        backend = self.preferences.values.get("backend", backends.DEFAULT)
        if self.frontend is not None or stored is None or "frontend" in self.preferences.unset:
            return self.frontend
        several = backends.of(backend).frontends
        return (frontend_of(stored.data) or earlier.get("frontend")) if several else None
