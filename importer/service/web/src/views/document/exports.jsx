// The document as its consumers get it: an entry of LocalAI first, then its engine, containers and clusters.

import { get } from "../../api.js";
import { Link, Problem, Section, Source, download } from "../../components/index.js";
import { TEXTS } from "../../text.js";
import { groups } from "./formats.js";

const T = TEXTS.exports;
const FIRST = "localai-gallery";

export async function load({ name, route, found, signal }) {
  const asked = route.query.get("as"), kind = Object.values(groups(found.backend)).flat().includes(asked) ? asked : FIRST;
  try {
    return { kind, made: await get(["configs", name, "export", kind], { signal }) };
  } catch (error) {
    if (!error.said) throw error;
    return { kind, error };
  }
}

export function View({ data: { kind, made, error }, found }) {
  return [
    <nav class="exports" aria-label={T.label}>{Object.entries(groups(found.backend)).map(([group, names]) => (names.length ? (
      <p key={group}><span class="soft">{T.groups[group]}</span>{names.map((one) => (
        <Link key={one} to={["documents", found.name, "exports"]} query={{ as: one }} aria-current={one === kind ? "page" : undefined}>{one}</Link>
      ))}</p>
    ) : null))}</nav>,
    <Section title={T.title(kind)}>
      {error ? <Problem error={error} /> : Object.entries(made.files).map(([file, text]) => (
        <div key={file}><p class="buttons"><strong class="break">{file}</strong><button type="button" onClick={() => download(text, file)}>{T.save}</button></p>
          <Source text={text} label={file} file={file} /></div>
      ))}
      {made?.lost.length ? <><p>{T.lost}</p><ul class="small">{made.lost.map((one) => <li class="break" key={one}>{one}</li>)}</ul></> : null}
    </Section>,
  ];
}
