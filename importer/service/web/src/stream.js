// A job's events as they happen, over fetch: an EventSource could not send a key.

import { Problem, address, headers, words } from "./api.js";

const LONGEST = 8000; // milliseconds between two attempts

// Yields {number, type, data} behind the event ``last``; goes on wherever a connection breaks, until the server
// says that nothing more will come. An end among the events may be that of an earlier attempt.
export async function* watch(job, signal, last = 0) {
  let pause = 250;
  while (!signal.aborted) {
    try {
      const answer = await fetch(address(["jobs", job, "events"]), {
        signal, cache: "no-store", headers: headers({ Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) }),
      });
      if (answer.status === 204) return;
      if (!answer.ok) throw new Problem(await words(answer), answer.status);
      for await (const event of events(answer.body)) {
        [last, pause] = [event.number, 250];
        yield event;
      }
      continue;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status < 500 && error.status !== 429) throw error;
    }
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(2 * pause, LONGEST);
  }
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
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

function parse(part) {
  const found = {};
  for (const line of part.split("\n")) {
    const at = line.indexOf(":");
    if (at > 0) found[line.slice(0, at)] = line.slice(at + 1).trimStart();
  }
  return found.data === undefined ? null : { number: Number(found.id), type: found.event, data: JSON.parse(found.data) };
}
