// Who is there, and what they came to see.

import { Refused, dropToken, get, keepToken, post } from "./api.js";
import { element, say, show } from "./dom.js";
import { inbox } from "./inbox.js";
import { decision } from "./decision.js";

async function start() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  // It works once and must not stay in the history.
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  if (code) {
    try {
      keepToken((await post("/api/sign-in", { code })).body.token);
    } catch (problem) {
      return signIn(problem.message);
    }
  }
  await enter();
}

async function enter() {
  let session;
  try {
    session = (await get("/api/session")).body;
  } catch (problem) {
    if (problem instanceof Refused && problem.status === 401) return signIn();
    return show("Not reached", element("h1", {}, "The server does not answer"), element("p", {}, problem.message));
  }
  document.getElementById("who").textContent = `signed in as ${session.name}`;
  if (!session.mayAnswer) {
    dropToken();
    return signIn(`The token "${session.name}" may not answer questions: it needs the scope answer.`);
  }
  const asked = location.pathname.match(/^\/resume\/([^/]+)$/);
  await (asked ? decision(decodeURIComponent(asked[1])) : inbox());
}

function signIn(problem) {
  document.getElementById("who").textContent = "";
  const input = element("input", { id: "token", type: "password", autocomplete: "off", required: true });
  const submit = async (event) => {
    event.preventDefault();
    keepToken(input.value.trim());
    await enter();
  };
  show(
    "Sign in",
    element("h1", {}, "Sign in"),
    problem ? element("p", { class: "problem", role: "alert" }, problem) : null,
    element("section", { class: "card" },
      element("p", {}, "On the machine where Airlock runs, ", element("code", {}, "airlock open"),
        " prints a link that signs you in. Or paste a token that may answer:"),
      element("form", { on: { submit } },
        element("div", { class: "field" }, element("label", { for: "token" }, "Token"), input),
        element("button", { class: "yes" }, "Sign in"))),
  );
  say("A token is needed.");
}

// A link that signs in may be opened in a tab that shows this page already.
addEventListener("hashchange", () => location.reload());

start();
