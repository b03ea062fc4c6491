// What may be done with a document beside its review: copied, saved, looked up at the Hub, imported again, deleted.

import { useState } from "preact/hooks";
import { ask, may } from "../../api.js";
import { Action, CopyButton, Dialog, Failure, HubLink, download, say, useAction } from "../../components/index.js";
import { go } from "../../router.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";
import { recheck, reimport, remove } from "../overview/each.js";

const T = TEXTS.actions;
export function Actions({ found }) {
  return (
    <details class="menu"><summary>{T.one}</summary><div>
      <Copies found={found} />
      <Files found={found} />
      <AtHub found={found} />
      <Again found={found} />
    </div></details>
  );
}

function Copies({ found }) {
  const url = new URL("gallery/index.yaml", document.baseURI).href;
  const texts = {
    name: found.name, digest: found.digest, command: command(found), galleries: TEXTS.gallery.line(JSON.stringify([{ name: "importer", url }])),
  };
  return <p class="buttons">{Object.entries(texts).filter(([, text]) => text).map(([kind, text]) => (
    <CopyButton key={kind} text={text} what={T[kind]} label={`${T.copy}: ${T.copies[kind]}`} />
  ))}</p>;
}

// The same import from a terminal.
function command({ model, revision, backend, name }) {
  if (!model || !/^[\w./-]+$/.test(model)) return null;
  return ["importer", model, ...(revision ? ["--revision", revision] : []), "--name", name, ...(backend ? ["--backend", backend] : [])].join(" ");
}

function Files({ found: { name, text } }) {
  const act = useAction();
  const receipt = async () => download(await (await ask("GET", ["configs", name, "receipt"])).blob(), `${name}.receipt.json`);
  return [
    <p class="buttons"><span class="soft">{T.files}</span>
      <Action act={act} name="yaml" label={T.yaml} onAct={() => download(text, `${name}.yaml`)} />
      <Action act={act} name="receipt" label={T.receipt} onAct={receipt} />
    </p>,
    <Failure of={act} />,
  ];
}

function AtHub({ found: { model, revision } }) {
  const { me } = useView();
  if (!model || !me.hub || !/^[\w.-]+\/[\w.-]+$/.test(model)) return null;
  const base = `${me.hub.replace(/\/+$/, "")}/${model}`;
  return <p>{T.hub}{": "}{revision && /^[0-9a-f]+$/.test(revision) ? [<HubLink href={`${base}/tree/${revision}`}>{T.hubCommit}</HubLink>, ", "] : null}
    <HubLink href={base}>{T.hubModel}</HubLink></p>;
}

function Again({ found }) {
  const { name, release } = found;
  const { me } = useView(), act = useAction();
  const [asks, setAsks] = useState(false);
  const job = (asked) => async () => go(["jobs", (await asked()).id]);
  const deleted = async () => {
    await remove(found);
    go(["documents"]);
    say(T.deletedOne(name));
  };
  return [
    <p class="buttons">
      <Action act={act} name="reimport" label={T.names.reimport} disabled={!may(me, "import")} onAct={job(() => reimport(name, found.backend))} />
      <Action act={act} name="recheck" label={T.names.recheck} disabled={!may(me, "import")} onAct={job(() => recheck(found))} />
      <Action act={act} name="ask" label={T.names.delete} disabled={!may(me, "approve")} onAct={() => setAsks(true)} />
    </p>,
    asks ? <Dialog title={T.deleteOne(name)} onClose={() => setAsks(false)}>
      <p>{release === null ? T.deletes : T.deletesServed}</p>
      <p class="buttons"><Action act={act} name="delete" main label={T.yesOne} onAct={deleted} /></p>
      <Failure of={act} />
    </Dialog> : <Failure of={act} />,
  ];
}
