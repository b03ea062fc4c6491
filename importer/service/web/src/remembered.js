// A choice of appearance that outlasts the tab: the device. Nothing else is kept, and no key.

const PREFIX = "importer-";

export function remembered(name) {
  try {
    return localStorage.getItem(PREFIX + name) ?? "";
  } catch {
    return ""; // a browser may forbid it
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(PREFIX + name, value);
  } catch {
    // it is asked again in the next tab
  }
}
