"""The jobs table becomes the queue: the process of a job, the number of its claims, and results of its steps.

Jobs in flight belong to workflows of version 1. A process of that version ends those that it runs; the others
begin anew once no such process is left. It begins and creates no further ones: ``enqueued`` is removed.
"""

from __future__ import annotations

STATEMENTS = (
    "ALTER TABLE jobs ADD COLUMN executor TEXT",
    "ALTER TABLE jobs ADD COLUMN claims INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE jobs ADD COLUMN version TEXT",
    """UPDATE jobs SET version = '1'
        WHERE kind <> 'imports' AND state IN ('queued', 'running')
        AND (enqueued = 1 OR device IS NOT NULL)""",
    "ALTER TABLE jobs DROP COLUMN enqueued",
    """CREATE TABLE steps (
        job TEXT NOT NULL, name TEXT NOT NULL, result TEXT NOT NULL, PRIMARY KEY (job, name))""",
)
