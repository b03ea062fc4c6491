"""An edit of a document: one more version with another text."""

from __future__ import annotations

from collections.abc import Callable

from importer.document.files import write_all
from importer.gallery.act import Act
from importer.gallery.entry import Summary, Version
from importer.gallery.gallery import check_version
from importer.service.checking import checked
from importer.service.desk import Desk

Edit = Callable[[str], str]


def edit(name: str, at: Desk, act: Act, wanted: list[int] | None, text: Edit) -> tuple[Summary, Version]:
    """What the document is then; the schema has to allow it.

    A text takes its time to be read: nobody waits for that, and an edit of an old version is refused. Raises
    DocumentError and ServiceError("precondition-failed").
    """
    last = at.gallery.get(name)[1]
    check_version(name, last.number, wanted)
    new = text(last.text)
    checked(new, name)
    with at.gallery.change(act) as change:
        change.expect(name, [last.number])
        write_all({change.checkout.path(name): new})
        summary = change.save(name)
    return summary, at.gallery.version(name, summary.version)
