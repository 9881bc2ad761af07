// The browsers that are signed in, and a button to end each session.

import { get, remove } from "./api.js";
import { element, say, show, time } from "./dom.js";

export async function browsers(signOut) {
  const problem = element("p", { class: "problem", role: "alert", hidden: true });
  const list = element("ul", { class: "plain" });
  show("Browsers", element("h1", {}, "Signed-in browsers"), problem,
    element("section", { class: "card", "aria-label": "Signed-in browsers" }, list),
    element("p", {}, element("a", { href: "/" }, "All open questions")));
  const draw = async () => {
    const { sessions } = (await get("/api/sessions")).body;
    list.replaceChildren(...sessions.map((session) => line(session, () => end(session))));
  };
  const end = async (session) => {
    problem.hidden = true;
    try {
      if (session.current) { await signOut(); return; }
      await remove(`/api/sessions/${encodeURIComponent(session.id)}`);
      say("The session has ended.");
      await draw();
    } catch (refused) {
      problem.textContent = refused.message;
      problem.hidden = false;
    }
  };
  await draw();
}

function line(session, end) {
  return element("li", { "data-session": session.id },
    element("div", {}, session.current ? element("strong", {}, "This browser. ") : null, session.agent || "A browser without a name"),
    element("div", { class: "quiet" }, `signed in as ${session.name}, `, time(session.created), ", until ", time(session.expires),
      session.kind === "tab" ? ", one tab" : ""),
    element("button", { class: "no", type: "button", on: { click: end } }, session.current ? "Sign out" : "End"));
}
