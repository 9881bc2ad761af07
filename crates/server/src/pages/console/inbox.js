// The open questions, updated as they change.

import { follow } from "./api.js";
import { element, say, show, time } from "./dom.js";

export async function inbox() {
  const status = element("p", { class: "quiet" });
  const list = element("ul", { class: "plain" });
  const warning = element("p", { class: "problem", id: "notice" });
  show("Questions", element("h1", {}, "Open questions"), status, warning, element("section", { class: "card", "aria-label": "Open questions" }, list));
  let count = null;
  const hear = ({ questions, complete, notice }) => {
    warning.textContent = notice ?? "";
    list.replaceChildren(...(questions.length ? questions.map(line) : [element("li", {}, "Nothing waits for you.")]));
    if (!complete) list.append(element("li", { class: "quiet" }, "Older executions are not looked through."));
    if (count !== questions.length) {
      count = questions.length;
      document.title = count ? `(${count}) Questions – Airlock` : "Questions – Airlock";
      say(count === 1 ? "One question is open." : `${count} questions are open.`);
    }
  };
  const connected = (is) => { status.textContent = is ? "" : "Not connected. Trying again …"; };
  try {
    await follow("/api/questions", hear, new AbortController().signal, connected);
  } catch (problem) {
    status.textContent = problem.message;
  }
}

function line(question) {
  const title = question.message.split("\n")[0];
  return element("li", {},
    element("a", { href: `/resume/${question.executionId}` }, title),
    element("div", { class: "quiet" },
      element("code", {}, question.address), " asked for ", question.caller, ", ", time(question.created)));
}
