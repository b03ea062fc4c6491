// Where one is: a place stands behind the #, so it can be kept, sent and gone back to.

// {parts, query} of the address: #/documents/NAME?state=draft
export function here() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { parts: parts.length ? parts : ["documents"], query: new URLSearchParams(query) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// A place in this page; a value that is empty is not in it, a list is there once for each of its values.
export function place(parts, query = {}) {
  const found = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    for (const one of [value].flat()) if (one !== undefined && one !== null && one !== "") found.append(key, one);
  }
  const tail = found.toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${tail && `?${tail}`}`;
}

export function go(parts, query) {
  location.hash = place(parts, query);
}

// The same without a step of its own in the browser's history.
export function replace(parts, query) {
  history.replaceState(null, "", place(parts, query));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

let tabbed = false;

// The next place is a part of this one: its tab gets the focus, not the title.
export function keepTab() {
  tabbed = true;
}

export function tookTab() {
  const found = tabbed;
  tabbed = false;
  return found;
}
