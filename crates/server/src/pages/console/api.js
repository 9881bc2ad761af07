// The public API, spoken with the visitor's own bearer. It lives in this tab and nowhere else.

const KEY = "airlock-token";

// How long to wait before a stream that broke is taken up again; it doubles up to the maximum.
const RETRY_MS = 500;
const RETRY_MS_MAX = 10_000;

export class Refused extends Error {
  constructor(status, body) {
    super(typeof body?.message === "string" ? body.message : `The server answered ${status}.`);
    this.status = status;
    this.body = body;
  }
}

export function keepToken(token) {
  sessionStorage.setItem(KEY, token);
}

export function dropToken() {
  sessionStorage.removeItem(KEY);
}

function headers(more) {
  const token = sessionStorage.getItem(KEY);
  return { ...(token ? { Authorization: `Bearer ${token}` } : {}), ...more };
}

async function checked(response) {
  if (response.ok) return response;
  const text = await response.text();
  let body = null;
  try { body = JSON.parse(text); } catch { /* 401 is plain text */ }
  throw new Refused(response.status, body);
}

export async function get(path) {
  const response = await checked(await fetch(path, { headers: headers({ Accept: "application/json" }) }));
  return { body: await response.json(), execution: response.headers.get("Airlock-Execution") };
}

export async function post(path, body) {
  const sent = { method: "POST", headers: headers({ "Content-Type": "application/json" }), body: JSON.stringify(body) };
  const response = await checked(await fetch(path, sent));
  return { body: await response.json(), execution: response.headers.get("Airlock-Execution") };
}

// Follows a stream of events. `hear` gets each one as parsed JSON; a broken connection is taken up
// where it broke. Ends when the server says that nothing more will come, or with `signal`.
export async function follow(path, hear, signal, connected = () => {}) {
  let last = null;
  let wait = RETRY_MS;
  while (!signal.aborted) {
    try {
      const more = { Accept: "text/event-stream", ...(last === null ? {} : { "Last-Event-ID": last }) };
      const response = await checked(await fetch(path, { headers: headers(more), signal }));
      connected(true);
      if (response.status === 204) return;
      wait = RETRY_MS;
      for await (const { id, data } of frames(response.body)) {
        hear(JSON.parse(data));
        last = id ?? last;
      }
    } catch (problem) {
      if (signal.aborted) return;
      if (problem instanceof Refused && problem.status < 500) throw problem;
    }
    if (signal.aborted) return;
    connected(false);
    await new Promise((wake) => setTimeout(wake, wait));
    wait = Math.min(wait * 2, RETRY_MS_MAX);
  }
}

async function* frames(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const frame = { id: null, data: "" };
      for (const line of part.split("\n")) {
        if (line.startsWith("data:")) frame.data += line.slice(5).trimStart();
        if (line.startsWith("id:")) frame.id = line.slice(3).trim();
      }
      if (frame.data !== "") yield frame;
    }
  }
}
