// A job's events as they happen, over fetch: an EventSource could not send a key.

import { Problem, address, headers, words } from "./api.js";

const SHORTEST = 250, LONGEST = 8000; // milliseconds between two attempts
const SILENT = 45_000; // milliseconds without the server's sign of life, which it gives every 15 s

// The events of a job behind the event ``last``.
export const watch = (job, signal, last = 0) => streamed(["jobs", job, "events"], signal, last);

// Yields {number, type, data}; goes on wherever a connection breaks or falls silent, until the server says that nothing
// more will come. {type: "closed"} is the end of a connection: what is known may be old by then.
export async function* streamed(parts, signal, last = 0) {
  let pause = SHORTEST;
  while (!signal.aborted) {
    try {
      const answer = await fetch(address(parts), {
        signal, cache: "no-store", headers: headers({ Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) }),
      });
      if (answer.status === 204) return;
      if (!answer.ok) throw new Problem(await words(answer), answer.status);
      for await (const event of events(answer.body)) {
        [last, pause] = [event.number || last, SHORTEST];
        yield event;
      }
      if (signal.aborted) return;
      yield { type: "closed" };
    } catch (error) {
      if (signal.aborted) return;
      if (!passing(error)) throw error;
    }
    await slept(pause);
    pause = longer(pause);
  }
}

// The answer of ``ask()``, which is asked again for as long as the server cannot be reached.
export async function lasting(ask, signal) {
  for (let pause = SHORTEST; ; pause = longer(pause)) {
    try {
      return await ask();
    } catch (error) {
      if (signal.aborted || !passing(error)) throw error;
    }
    await slept(pause);
  }
}

const slept = (pause) => new Promise((done) => setTimeout(done, pause));
const longer = (pause) => Math.min(2 * pause, LONGEST);
// Whether it may be over at the next attempt; 0 is the status of a server that was not reached.
const passing = (error) => !(error instanceof Problem) || error.status === 0 || error.status === 429 || error.status >= 500;

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await inTime(reader.read());
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const event = parse(part);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// A connection can be gone without an end: after a computer's sleep, behind a proxy.
function inTime(read) {
  let timer;
  const late = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error("silent")), SILENT); });
  return Promise.race([read, late]).finally(() => clearTimeout(timer));
}

function parse(part) {
  const found = {};
  for (const line of part.split("\n")) {
    const at = line.indexOf(":");
    if (at > 0) found[line.slice(0, at)] = line.slice(at + 1).trimStart();
  }
  return found.data === undefined ? null : { number: Number(found.id), type: found.event, data: JSON.parse(found.data) };
}
