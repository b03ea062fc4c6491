// Texts of the page of API keys.

export const ACCESS = {
  title: "API keys",
  mayNot: "API keys are for keys with the scope admin.",
  act: (label, name) => `${label}: ${name}`,
  once: "Copy it now: it is not shown again.",
  kept: "I have copied it",

  keys: "API keys",
  aboutKeys: "A key names its user in the audit and allows what its scopes allow. Every key can read.",
  keyHeads: ["name", "scopes", "created", "by"],
  noKeys: "There are no API keys.",
  newKey: "New API key",
  name: "Name",
  names: "a person or a program",
  may: "Scopes",
  scopes: {
    read: "read", import: "import (and edit, validate)", approve: "approve (and reject, release, delete)",
    admin: "admin (everything)",
  },
  makeKey: "Create key",
  keyOf: (name) => `API key of ${name}.`,
  revoke: "Revoke",
  revoked: (name) => `The key of ${name} is revoked.`,
  revokedAt: "revoked",
  gone: "Revoked keys",
  askRevoke: (name) => `Revoke the key of ${name}?`,
  effectRevoke: "The server refuses this key from now on. A revoked key cannot be restored.",
};
