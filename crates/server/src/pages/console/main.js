// Signs the person in and shows the requested page.

import { Refused, SIGNED_OUT, get, signInWithCode, signInWithToken, signOut } from "./api.js";
import { element, say, show } from "./dom.js";
import { browsers } from "./browsers.js";
import { inbox } from "./inbox.js";
import { decision } from "./decision.js";
import { learnServerTime } from "./session.js";

// Delay before the request to an unreachable server is repeated.
const RETRY_MS = 2000;

async function start() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  // It works once and must not stay in the history.
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  if (code) {
    try {
      await signInWithCode(code);
    } catch (problem) {
      return signIn(problem.message, await isSignedIn());
    }
  }
  await enter();
}

const isSignedIn = () => get("/api/session").then((answer) => answer.body.mayAnswer, () => false);

async function enter() {
  let session;
  while (!session) {
    try {
      session = (await get("/api/session")).body;
    } catch (problem) {
      if (problem instanceof Refused && problem.status === 401) return signIn();
      const isThere = problem instanceof Refused;
      show("Not reached", element("h1", {}, "The server does not answer"),
        element("p", {}, isThere ? problem.message : "It cannot be reached. Trying again …"));
      if (isThere) return;
      await new Promise((wake) => setTimeout(wake, RETRY_MS));
    }
  }
  await learnServerTime();
  header(session);
  addEventListener(SIGNED_OUT, ended);
  const asked = location.pathname.match(/^\/resume\/([^/]+)$/);
  if (asked) return decision(decodeURIComponent(asked[1]));
  return location.pathname === "/browsers" ? browsers(leave) : inbox();
}

function header(session) {
  document.getElementById("who").replaceChildren(`signed in as ${session.name}`, ...(session.session
    ? [" · ", element("a", { href: "/browsers" }, "Browsers"), " · ",
      element("button", { class: "link", id: "sign-out", type: "button", on: { click: leave } }, "Sign out")]
    : []));
}

// The session ended elsewhere: on another page, by a command, by time, or with its token.
function ended() {
  removeEventListener(SIGNED_OUT, ended);
  signIn("The session of this browser has ended.");
}

async function leave() {
  removeEventListener(SIGNED_OUT, ended);
  // Even if the server does not answer, the key is deleted.
  try { await signOut(); } catch { /* the session ends by itself */ }
  signIn("This browser is signed out.");
}

function signIn(problem, isSignedInAlready = false) {
  document.getElementById("who").textContent = "";
  const input = element("input", { id: "token", type: "password", autocomplete: "off", required: true });
  const submit = async (event) => {
    event.preventDefault();
    try {
      await signInWithToken(input.value.trim());
    } catch (refused) {
      return signIn(refusal(refused));
    }
    await enter();
  };
  show(
    "Sign in",
    element("h1", {}, "Sign in"),
    problem ? element("p", { class: "problem", role: "alert" }, problem) : null,
    isSignedInAlready
      ? element("p", {}, "This browser is signed in already. ", element("a", { href: location.pathname }, "Continue"))
      : null,
    element("section", { class: "card" },
      element("p", {}, "On the machine where Airlock runs, ", element("code", {}, "airlock open"), " or ",
        element("code", {}, "airlock sign-in"), " prints a link that signs this browser in, once. Or enter a token that may answer:"),
      element("form", { on: { submit } },
        element("div", { class: "field" }, element("label", { for: "token" }, "Token"), input),
        element("button", { class: "yes" }, "Sign in"))),
  );
  say("A token is needed.");
}

function refusal(refused) {
  if (!(refused instanceof Refused)) return refused.message;
  if (refused.status === 401) return "This token is not known.";
  if (refused.body?.scope) return `This token may not answer questions: it needs the scope ${refused.body.scope}.`;
  return refused.message;
}

// A sign-in link may be opened in a tab that already shows this page.
addEventListener("hashchange", () => location.reload());

start();
