// Importing: one model or many, at once or only to look what it would be.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { post } from "../api.js";
import { Action, Area, Changes, Choice, Conflicts, Failure, Input, Link, Problem, Section, Source, Title, useAction } from "../components/index.js";
import { go } from "../router.js";
import { TEXTS } from "../text.js";
import { useView } from "../view.js";
import { Attention, Decided } from "./document/decisions.jsx";

const T = TEXTS.imports;

export function View() {
  const { route: { query } } = useView(), form = useRef(null), act = useAction();
  const [preview, setPreview] = useState(null); // {found}, {error} with candidates, or {} while it is read
  const look = (more = {}) => async () => {
    const body = { ...read(form.current), ...more };
    if (more.backend) form.current.elements.backend.value = more.backend;
    setPreview({});
    try {
      setPreview({ found: await post(["imports", "preview"], { body }) });
    } catch (error) {
      setPreview(error.said?.candidates ? { error } : null);
      if (!error.said?.candidates) throw error;
    }
  };
  const start = async () => {
    setPreview(null);
    const job = await post(["imports"], { body: read(form.current) });
    go(["jobs", job.id]);
  };
  useEffect(() => fill(form.current, query), []);
  const submit = (event) => { event.preventDefault(); act.run("start", start); };
  return [
    <Title>{T.title}</Title>,
    <form class="form" ref={form} onSubmit={submit}>
      <Fields />
      <p class="buttons"><Action act={act} name="start" type="submit" main label={T.start} /><Action act={act} name="look" label={T.preview} onAct={look()} /></p>
    </form>,
    <div id="result"><Failure of={act} />{preview ? <Preview preview={preview} act={act} look={look} /> : null}</div>,
  ];
}

function Fields() {
  const { me: { backends } } = useView();
  const choices = [["", backends.length === 1 ? backends[0] : T.ask], ["auto", T.auto], ...backends.map((b) => [b, b])];
  return [
    <Area id="references" label={T.references} rows={2} placeholder="Qwen/Qwen3-8B" required />,
    <div class="row"><Choice id="backend" label={T.backend} options={choices} /><Input id="name" label={T.name} placeholder={T.named} maxlength={200} /></div>,
    <details><summary>{T.more}</summary><div class="row">
      <Input id="revision" label={T.revision} placeholder="main" maxlength={200} />
      <Input id="device" label={T.device} placeholder={T.devices} maxlength={200} />
      <Choice id="per_device" label={T.perDevice} options={["", "true"].map((value, at) => [value, T.perDevices[at]])} />
      <Input id="memory" label={T.memory} placeholder={T.memories} maxlength={200} />
      <Input id="engine_version" label={T.version} maxlength={200} />
      <Choice id="template" label={T.template} options={Object.entries(T.templates)} />
      <Area id="set" label={T.set} rows={2} placeholder="temperature=0.6" />
      <Input id="note" label={T.note} maxlength={4000} />
    </div></details>,
  ];
}

// Puts values of the address into the form: those of an import that is tried under another name.
function fill(form, query) {
  for (const [name, text] of query) {
    const field = form.elements.namedItem(name);
    if (field && "value" in field) field.value = text;
  }
  const behind = form.querySelector("details");
  behind.open ||= [...behind.querySelectorAll("[name]")].some((one) => query.get(one.name));
}

// The request; a field that is empty is not in it. Throws where a line is no key=value.
function read(form) {
  const given = {};
  for (const [name, text] of new FormData(form)) if (text.trim()) given[name] = text.trim();
  const { references = "", set, ...said } = given;
  const models = references.split("\n").map((line) => line.trim()).filter(Boolean);
  if (!models.length) throw new Error(T.noModel);
  if (set) said.set = assignments(set);
  if (said.per_device) said.per_device = true;
  return { ...said, ...(models.length === 1 ? { reference: models[0] } : { references: models }) };
}

function assignments(lines) {
  const found = {};
  for (const line of lines.split("\n").map((l) => l.trim()).filter(Boolean)) {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(T.noValue(line));
    found[line.slice(0, at).trim()] = value(line.slice(at + 1).trim());
  }
  return found;
}

function value(word) {
  try {
    return JSON.parse(word);
  } catch {
    return word;
  }
}

function Preview({ preview: { found, error }, act, look }) {
  if (found) return <Found found={found} />;
  if (!error) return <p role="status">{T.reading}</p>;
  return [
    <Problem error={error} next={false} asks />,
    <p class="buttons">{T.previewFor}{error.said.candidates.map((c) => (
      <Action key={c.backend} act={act} name={c.backend} label={c.backend} onAct={look({ backend: c.backend })} />
    ))}</p>,
  ];
}

function Found({ found }) {
  const head = useRef(null);
  useLayoutEffect(() => head.current.focus(), [found]);
  return [
    <h2 tabindex={-1} ref={head}>{T.result}</h2>,
    <p>{found.new ? T.isNew : T.isHere}{found.new ? found.name : <Link to={["documents", found.name]}>{found.name}</Link>}{T.unwritten}</p>,
    <Attention texts={found.warnings.map(T.warning)} />,
    found.conflicts.length ? [<h3>{T.conflicts}</h3>, <Conflicts found={found.conflicts} />] : null,
    found.edits.length ? [<h3>{T.edits}</h3>, <Changes found={found.edits} />] : null,
    !found.new && found.changes.length ? [<h3>{T.changes}</h3>, <Changes found={found.changes} />] : null,
    <Source text={found.text} label={T.document} file={`${found.name}.yaml`} />,
    <Section title={T.decisions}><Decided told={found} /></Section>,
  ];
}
