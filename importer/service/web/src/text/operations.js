// Texts of the page for operators.

import { number } from "./number.js";

// The rows of a table of the database, one and many.
const ROWS = {
  configs: ["document", "documents"], versions: ["version", "versions"], receipts: ["receipt", "receipts"],
  jobs: ["job", "jobs"], events: ["event", "events"], audit: ["audit entry", "audit entries"],
  rechecks: ["rechecked document", "rechecked documents"],
};

export const OPERATIONS = {
  title: "Operations",
  refresh: "Refresh",
  version: "server version",
  database: "database",
  hub: "Hub",
  budget: (n) => `, ${number(n, "request", "requests")} left`,
  rows: (kind, n) => number(n, ...(ROWS[kind] ?? [kind, kind])),
  workers: "Workers",
  workerHeads: ["worker", "state", "device", "engines", "memory", "jobs", "last seen"],
  noWorkers: "No worker runs. Start one with importer admin worker.",
  alive: { true: "alive", false: "gone" },
  idle: "no job",
  noValidation: "none (no validations)",
  engines: "Engines on this server",
  engineHeads: ["engine", "version", "origin"],
  notInstalled: "not installed",
  queue: "Queue",
  queueHeads: ["kind", "by", "queued", "running", "oldest queued at"],
  noQueue: "The queue is empty.",
  retention: "Retention",
  ran: (last, next) => `Last run: ${last}. Next run: ${next}.`,
  never: "It has not run yet.",
  retentionHeads: ["kind", "kept for", "at most", "due for removal", "removed so far"],
  days: (n) => `${n} ${n === 1 ? "day" : "days"}`,
  unlimited: "no limit",
  audit: "Audit",
  auditHeads: ["when", "who", "action", "subject", "details"],
  auditFilters: "Audit filters",
  by: "Who",
  action: "Action",
  subject: "Document or job",
  noAudit: "No entries.",
  auditPages: "Audit pages",
  mayNot: "Operations are for keys with the scope admin.",
};
