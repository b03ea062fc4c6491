// What was asked of a job: names with values, references and documents as links, each value of a list on its own line.

import { Facts, HubLink, Link } from "../../components/index.js";
import { shown } from "../../format.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";

const MODEL = /^([\w.-]+\/[\w.-]+)(?:@([\w.\/-]+))?$/; // owner/name, and a revision

export const asked = (request) => Object.fromEntries(Object.entries(request).map(([name, value]) => [
  TEXTS.jobs.asked[name] ?? name.replaceAll("_", " "), <Value name={name} value={value} />,
]));

function Value({ name, value }) {
  if (Array.isArray(value)) return <ul class="plain">{value.map((one, at) => <li key={at}><Value name={name} value={one} /></li>)}</ul>;
  if (value && typeof value === "object") return <Facts told={Object.fromEntries(Object.entries(value).map(([key, one]) => [key, shown(one)]))} />;
  if (name === "names") return <Link to={["documents", String(value)]}>{value}</Link>;
  if (name === "reference" || name === "references") return <Model reference={String(value)} />;
  return typeof value === "string" ? value : shown(value);
}

// A page of the Hub where the text names a model there; else the text.
function Model({ reference }) {
  const { me } = useView(), found = MODEL.exec(reference);
  if (!found || !me.hub) return reference;
  const [, model, revision] = found, base = `${me.hub.replace(/\/+$/, "")}/${model}`;
  return <HubLink href={revision ? `${base}/tree/${revision}` : base}>{reference}</HubLink>;
}
