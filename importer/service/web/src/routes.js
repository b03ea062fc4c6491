// The table of places. A view is one module: ``load({route, me, signal})`` asks for its data, ``View({data})`` shows it.
// A part with ? may be absent, and does not make another view of it.

import * as deleted from "./views/deleted.jsx";
import * as document from "./views/document.jsx";
import * as gallery from "./views/gallery.jsx";
import * as imports from "./views/imports.jsx";
import * as job from "./views/job.jsx";
import * as jobs from "./views/jobs.jsx";
import * as keys from "./views/keys.jsx";
import * as overview from "./views/overview.jsx";

export const ROUTES = [
  ["documents", overview],
  ["deleted", deleted],
  ["documents/:name/:tab?", document],
  ["import", imports],
  ["jobs", jobs],
  ["jobs/:id", job],
  ["gallery", gallery],
  ["key", keys],
];

// The order of the navigation; labels are TEXTS.shell.nav.
export const PAGES = ["documents", "import", "jobs", "gallery", "key"];

// {view, pattern, params, ident} for the parts of an address, or null.
export function matched(parts) {
  for (const [pattern, view] of ROUTES) {
    const wanted = pattern.split("/"), params = {}, ident = [pattern];
    if (parts.length > wanted.length) continue;
    const fits = wanted.every((one, at) => {
      if (!one.startsWith(":")) return one === parts[at];
      const name = one.replace(/^:|\?$/g, "");
      params[name] = parts[at];
      if (!one.endsWith("?")) ident.push(parts[at]);
      return one.endsWith("?") || parts[at] !== undefined;
    });
    if (fits) return { view, pattern, params, ident: ident.join(" ") };
  }
  return null;
}
