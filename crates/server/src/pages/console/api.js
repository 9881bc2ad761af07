// The public API, called with this browser's session.

import { forgetServer, forgetSession, proof, setElevation, startSession } from "./session.js";

// Initial and maximum delay before a broken stream is reconnected; the delay doubles.
const RETRY_MS = 500;
const RETRY_MS_MAX = 10_000;

// Dispatched on the window when a request is refused because the session has ended.
export const SIGNED_OUT = "airlock-signed-out";

export class Refused extends Error {
  constructor(status, body) {
    super(typeof body?.message === "string" ? body.message : `The server answered ${status}.`);
    this.status = status;
    this.body = body;
  }
}

async function checked(response) {
  if (response.ok) return response;
  const text = await response.text();
  let body = null;
  try { body = JSON.parse(text); } catch { /* 401 is plain text */ }
  throw new Refused(response.status, body);
}

// Sends a request of this session. A restarted server has a new nonce: the request is then retried once.
async function send(method, path, body) {
  for (const isLast of [false, true]) {
    const headers = { Accept: "application/json", ...(await proof(method, path, body)) };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const response = await fetch(path, { method, headers, body });
    if (response.status !== 401) return checked(response);
    if (isLast || !headers.Authorization) {
      dispatchEvent(new Event(SIGNED_OUT));
      return checked(response);
    }
    forgetServer();
  }
}

async function read(response) {
  return { body: await response.json(), execution: response.headers.get("Airlock-Execution") };
}

export const get = async (path) => read(await send("GET", path));
export const post = async (path, body) => read(await send("POST", path, JSON.stringify(body)));
export const remove = async (path) => read(await send("DELETE", path));

async function postWith(path, body, headers) {
  const sent = { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) };
  return (await checked(await fetch(path, sent))).json();
}

export const signInWithCode = (code) => startSession(code, (path, body) => postWith(path, body, {}));

// Exchanges a token for a code. The token is stored nowhere.
const codeFor = async (token, body) =>
  (await postWith("/api/sign-in/codes", body, { Authorization: `Bearer ${token}` })).code;

export const signInWithToken = async (token) => signInWithCode(await codeFor(token, {}));

// Raises this tab for an hour with a code from `airlock sign-in --admin`, or with a token.
export async function elevate(entered) {
  const code = entered.startsWith("alk_") ? await codeFor(entered, { admin: true }) : entered;
  setElevation((await post("/api/session/elevation", { code })).body);
}

// Ends the session on the server and deletes the key, even if the server does not answer.
export async function signOut() {
  try { await remove("/api/session"); } finally { await forgetSession(); }
}

// Follows a stream of events. `hear` receives each one as parsed JSON; a broken connection is resumed where it ended.
// Ends when the server reports the end of the stream, or with `signal`.
export async function follow(path, hear, signal, connected = () => {}) {
  let last = null;
  let wait = RETRY_MS;
  while (!signal.aborted) {
    try {
      const { ticket } = (await post("/api/tickets", { path })).body;
      const headers = { Accept: "text/event-stream", ...(last === null ? {} : { "Last-Event-ID": last }) };
      const address = ticket ? `${path}?ticket=${encodeURIComponent(ticket)}` : path;
      const response = await checked(await fetch(address, { headers, signal }));
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
