// Importing: one model or many, at once or only to look what it would be.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { get, post } from "../api.js";
import { Action, Area, Changes, Choice, Code, Conflicts, Failure, Input, Link, Numbered, Problem, Section, Source, Title, useAction } from "../components/index.js";
import { grouped } from "../devices.js";
import { shown } from "../format.js";
import { go } from "../router.js";
import { TEXTS } from "../text.js";
import { useView } from "../view.js";
import { Attention, Decided } from "./document/decisions.jsx";
import { Models } from "./imports/models.jsx";

const T = TEXTS.imports;
const SECOND = 1000; // milliseconds
const WHOLE = ["concurrency", "context"]; // fields whose values are numbers

export const load = ({ signal }) => get(["devices"], { signal });

export function View({ data: devices }) {
  const { route: { query } } = useView(), form = useRef(null), act = useAction();
  const [preview, setPreview] = useState(null); // {found}, {error} with candidates, or {leaving} while it is read
  const release = (key) => { const { unset } = form.current.elements; unset.value = `${unset.value} ${key}`.trim(); };
  const look = (more = {}) => async () => {
    const body = { ...read(form.current), ...more };
    if (more.backend) form.current.elements.backend.value = more.backend;
    const leaving = new AbortController();
    setPreview({ leaving });
    try {
      setPreview({ found: await post(["imports", "preview"], { body, signal: leaving.signal }) });
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
      <Fields devices={devices} />
      <p class="buttons"><Action act={act} name="start" type="submit" main label={T.start} /><Action act={act} name="look" label={T.preview} onAct={look()} /></p>
    </form>,
    <div id="result"><Failure of={act} />{preview ? <Preview preview={preview} act={act} look={look} release={release} /> : null}</div>,
  ];
}

function Fields({ devices }) {
  const { me: { backends }, route: { query } } = useView();
  const choices = [["", backends.length === 1 ? backends[0] : T.ask], ["auto", T.auto], ...backends.map((b) => [b, b])];
  return [
    <Models />,
    <div class="row"><Choice id="backend" label={T.backend} options={choices} /><Input id="name" label={T.name} placeholder={T.named} maxlength={200} /></div>,
    <details><summary>{T.plan}</summary><div class="row">
      <Choice id="device" label={T.device} options={[["", T.noDevice], ...grouped(devices, [counted(query.get("device"))[1]])]} />
      <Input id="count" label={T.count} type="number" min={1} max={128} placeholder="1" />
      <Input id="memory" label={T.memory} placeholder={T.memories} maxlength={200} />
      <Choice id="goal" label={T.goal} options={Object.entries(T.goals)} />
      <Input id="concurrency" label={T.concurrency} type="number" min={1} max={100000000} />
      <Input id="context" label={T.context} type="number" min={1} max={100000000} />
      <Choice id="per_device" label={T.perDevice} options={["", "true"].map((value, at) => [value, T.perDevices[at]])} />
    </div><p class="soft small">{T.about}</p></details>,
    <details><summary>{T.more}</summary><div class="row">
      <Input id="revision" label={T.revision} placeholder="main" maxlength={200} />
      <Input id="engine_version" label={T.version} maxlength={200} />
      <Choice id="template" label={T.template} options={Object.entries(T.templates)} />
      <Area id="set" label={T.set} rows={2} placeholder="temperature=0.6" />
      <Input id="unset" label={T.unset} placeholder="device temperature" />
      <Input id="note" label={T.note} maxlength={4000} />
    </div></details>,
  ];
}

// "8xh200" as its number and its name.
const counted = (label) => /^(?:(\d+)x)?(.*)$/.exec(label ?? "").slice(1);

// Puts values of the address into the form: those of an import that is tried under another name.
function fill(form, query) {
  const [count, device] = counted(query.get("device"));
  for (const [name, text] of [...query, ["device", device], ["count", count]]) {
    const field = form.elements.namedItem(name);
    if (field && "value" in field) field.value = text ?? "";
  }
  for (const behind of form.querySelectorAll("details")) {
    behind.open ||= [...behind.querySelectorAll("[name]")].some((one) => query.get(one.name));
  }
}

// The request; a field that is empty is not in it. Throws where a line is no key=value.
function read(form) {
  const given = {};
  for (const [name, text] of new FormData(form)) if (text.trim()) given[name] = text.trim();
  const { references = "", set, count = "1", ...said } = given;
  const models = references.split("\n").map((line) => line.trim()).filter(Boolean);
  if (!models.length) throw new Error(T.noModel);
  if (set) said.set = assignments(set);
  if (said.unset) said.unset = said.unset.split(/[\s,]+/);
  if (said.per_device) said.per_device = true;
  if (said.device && Number(count) !== 1) said.device = `${count}x${said.device}`;
  for (const name of WHOLE) if (said[name]) said[name] = Number(said[name]);
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

function Preview({ preview: { found, error, leaving }, act, look, release }) {
  if (found) return <Found found={found} act={act} letGo={(key) => { release(key); return look()(); }} />;
  if (!error) return <Reading leaving={leaving} />;
  return [
    <Problem error={error} next={false} asks />,
    <p class="buttons">{T.previewFor}{error.said.candidates.map((c) => (
      <Action key={c.backend} act={act} name={c.backend} label={c.backend} onAct={look({ backend: c.backend })} />
    ))}</p>,
  ];
}

// A preview has no steps of its own: the time shows that it goes on.
function Reading({ leaving }) {
  const [seconds, set] = useState(0);
  useEffect(() => {
    const began = Date.now(), timer = setInterval(() => set(Math.round((Date.now() - began) / SECOND)), SECOND);
    return () => clearInterval(timer);
  }, []);
  return (
    <p class="buttons"><span><span role="status">{T.reading}</span>{" "}<span class="soft">{T.seconds(seconds)}</span></span>
      <button type="button" onClick={() => leaving.abort()}>{TEXTS.progress.cancel}</button></p>
  );
}

function Found({ found, act, letGo }) {
  const head = useRef(null);
  useLayoutEffect(() => head.current.focus(), [found]);
  return [
    <h2 tabindex={-1} ref={head}>{T.result}</h2>,
    <p>{found.new ? T.isNew : T.isHere}{found.new ? found.name : <Link to={["documents", found.name]}>{found.name}</Link>}{T.unwritten}</p>,
    Object.entries(found.kept).map(([key, value]) => (
      <p class="line" key={key}>{T.kept}<Code>{`${key}=${shown(value)}`}</Code><Action act={act} name={`unset ${key}`} label={T.letGo} told={`${T.letGo}: ${key}`} onAct={() => letGo(key)} /></p>
    )),
    <Attention texts={found.warnings.map(T.warning)} />,
    found.conflicts.length ? [<h3>{T.conflicts}</h3>, <Conflicts found={found.conflicts} />] : null,
    found.edits.length ? [<h3>{T.edits}</h3>, <Changes found={found.edits} />] : null,
    !found.new && found.changes.length ? [<h3>{T.changes}</h3>, <Changes found={found.changes} />] : null,
    <Source text={found.text} label={T.document} file={`${found.name}.yaml`} />,
    <Section title={T.decisions}><Decided told={found} /></Section>,
  ];
}
