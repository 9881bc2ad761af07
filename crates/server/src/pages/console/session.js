// This browser's session. Its private key is in IndexedDB, where all tabs of this origin (and its port) use it
// and no script can read it. Without WebCrypto (plain http from another machine) a bearer lives in this tab.
// docs/console.md describes the protocol.

const TAB_KEY = "airlock-tab-session";
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256" };
const HASH = { name: "ECDSA", hash: "SHA-256" };

// {nonce, ahead}: the nonce that signatures must cover, and how far the server's clock is ahead of this one.
let server = null;
// In the memory of this tab only: {id, expires}.
let elevation = null;

const hasKeys = () => Boolean(globalThis.crypto?.subtle && globalThis.indexedDB);

function base64url(bytes) {
  return btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function withStore(mode, use) {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("airlock", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("session");
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const database = opening.result;
      const request = use(database.transaction("session", mode).objectStore("session"));
      request.onsuccess = () => { database.close(); resolve(request.result); };
      request.onerror = () => { database.close(); reject(request.error); };
    };
  });
}

// Read each time: another tab may have signed in or out.
const storedSession = () => (hasKeys() ? withStore("readonly", (store) => store.get("current")) : Promise.resolve(null));

// Exchanges a code for a session. `send` posts JSON without credentials.
export async function startSession(code, send) {
  if (!hasKeys()) {
    const { token } = await send("/api/sign-in", { code });
    sessionStorage.setItem(TAB_KEY, token);
    return;
  }
  const pair = await crypto.subtle.generateKey(ALGORITHM, false, ["sign", "verify"]);
  const key = base64url(await crypto.subtle.exportKey("raw", pair.publicKey));
  const { session, name, expires } = await send("/api/sign-in", { code, key });
  await withStore("readwrite", (store) => store.put({ id: session, name, expires, key: pair.privateKey }, "current"));
}

export async function forgetSession() {
  elevation = null;
  sessionStorage.removeItem(TAB_KEY);
  if (hasKeys()) await withStore("readwrite", (store) => store.delete("current"));
}

export const setElevation = (granted) => { elevation = { id: granted.elevation, expires: granted.expires }; };

// Makes the next request ask the server for its nonce and time again: it may have been restarted.
export const forgetServer = () => { server = null; };

async function currentServer() {
  if (server === null) {
    const answer = await fetch("/api/sign-in", { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
    const { nonce, time } = await answer.json();
    server = { nonce, ahead: time - Date.now() };
  }
  return server;
}

// Asks the server for its time, so that ages are correct from the start.
export const learnServerTime = () => currentServer().then(() => true, () => false);

// The server's time, as far as it is known.
export const serverNow = () => Date.now() + (server?.ahead ?? 0);

// The headers that authenticate a request: none without a session.
export async function proof(method, path, body) {
  const tab = sessionStorage.getItem(TAB_KEY);
  const session = tab ? null : await storedSession();
  if (!tab && !session) return {};
  if (elevation && elevation.expires <= serverNow()) elevation = null;
  const raised = elevation ? { "Airlock-Elevation": elevation.id } : {};
  if (tab) return { Authorization: `Bearer ${tab}`, ...raised };
  return { Authorization: await signed(session, method, path, body, elevation?.id ?? ""), ...raised };
}

async function signed(session, method, path, body, raised) {
  const { nonce } = await currentServer();
  const { pathname, search } = new URL(path, location.origin);
  const digest = base64url(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(body ?? "")));
  const time = String(Math.round(serverNow()));
  const value = base64url(crypto.getRandomValues(new Uint8Array(16)));
  const lines = ["airlock-session-v1", method, pathname + search, digest, nonce, time, value, session.id, raised];
  const signature = base64url(await crypto.subtle.sign(HASH, session.key, new TextEncoder().encode(lines.join("\n"))));
  return `Airlock-Session id=${session.id},nonce=${nonce},time=${time},value=${value},body=${digest},signature=${signature}`;
}
