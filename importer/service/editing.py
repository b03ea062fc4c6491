"""An edit of a document: one more version with another text."""

from __future__ import annotations

from collections.abc import Callable

from importer.document.files import write_all
from importer.document.granted import grants
from importer.errors import ServiceError
from importer.gallery.act import Act
from importer.gallery.entry import Summary, Version
from importer.gallery.gallery import check_version
from importer.service.caller import Caller
from importer.service.checking import checked
from importer.service.desk import Desk
from importer.service.granting import need_approver

Edit = Callable[[str], str]
TRIES = 20  # of an edit that any version will do for, while others are quicker


def edit(
    name: str, at: Desk, who: Caller, act: Act, wanted: list[int] | None, text: Edit
) -> tuple[Summary, Version]:
    """What the document is then; the schema has to allow it, and ``who`` has to be allowed what it grants.

    ``wanted`` are the versions that it may be of; of any it is made anew where somebody was quicker. Raises
    DocumentError and ServiceError: "precondition-failed", "needs-approver".
    """
    left = TRIES if wanted is None else 1
    while True:
        left -= 1
        try:
            return _edit(name, at, who, act, wanted, text)
        except ServiceError as error:
            if not left or error.kind != "precondition-failed":
                raise


def _edit(
    name: str, at: Desk, who: Caller, act: Act, wanted: list[int] | None, text: Edit
) -> tuple[Summary, Version]:
    """A text takes its time to be read: nobody waits for that, and an edit of an old version is refused."""
    last = at.gallery.get(name)[1]
    check_version(name, last.number, wanted)
    new = text(last.text)
    need_approver(who, grants(checked(new, name)), grants(last.stored.data))
    with at.gallery.change(act) as change:
        change.expect(name, [last.number])
        write_all({change.checkout.path(name): new})
        summary = change.save(name)
    return summary, at.gallery.version(name, summary.version)
