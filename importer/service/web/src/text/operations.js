// Texts of the page for operators.

import { number } from "./number.js";

// The rows of a table of the database, one and many.
const ROWS = {
  configs: ["document", "documents"], versions: ["version", "versions"], releases: ["release", "releases"], receipts: ["receipt", "receipts"],
  jobs: ["job", "jobs"], events: ["event", "events"], audit: ["record of the audit", "records of the audit"],
  findings: ["finding", "findings"], deliveries: ["delivery", "deliveries"],
};

export const OPERATIONS = {
  title: "Operations",
  refresh: "Refresh",
  version: "version of the server",
  database: "database",
  hub: "Hub",
  budget: (n) => `, ${number(n, "request", "requests")} left`,
  rows: (kind, n) => number(n, ...(ROWS[kind] ?? [kind, kind])),
  workers: "Workers",
  workerHeads: ["worker", "state", "device", "engines", "memory", "runs", "last seen"],
  noWorkers: "No process runs jobs: start one with importer worker.",
  alive: { true: "alive", false: "gone" },
  idle: "nothing",
  noValidation: "none: it does not validate",
  engines: "Engines on this server",
  engineHeads: ["engine", "version", "from"],
  notInstalled: "not installed",
  queue: "Queue",
  queueHeads: ["kind", "by", "queued", "running", "oldest waits since"],
  noQueue: "The queue is empty.",
  keys: "API keys",
  keyHeads: ["name", "scopes", "made", "by", "revoked"],
  noKeys: "There is no key. Make one with importer api-keys create NAME.",
  retention: "Retention",
  ran: (last, next) => `It ran ${last}; the next run is due ${next}.`,
  never: "not yet",
  retentionHeads: ["kind", "kept for", "at most", "due now", "removed so far"],
  days: (n) => `${n} ${n === 1 ? "day" : "days"}`,
  unlimited: "no limit",
  audit: "Audit",
  auditHeads: ["when", "who", "action", "of", "details"],
  auditFilters: "Filters of the audit",
  by: "Who",
  action: "Action",
  subject: "Document or job",
  noAudit: "No entries.",
  auditPages: "Pages of the audit",
  mayNot: "Operations are for keys with the scope admin.",
};
