// One execution that asks: its questions, its script, its history. Follows it to its end.

import { Refused, follow, get } from "./api.js";
import { closedCard, expiredCard, openCard } from "./card.js";
import { element, say, show, time } from "./dom.js";
import { done, script, value } from "./show.js";
import { Story } from "./story.js";

// Delay before the request to an unreachable server is repeated.
const RETRY_MS = 2000;

export async function decision(id) {
  let execution;
  while (!execution) {
    try {
      ({ execution } = await get(`/api/executions/${encodeURIComponent(id)}`));
    } catch (problem) {
      const isThere = problem instanceof Refused;
      const gone = isThere && problem.status === 404;
      const why = isThere ? problem.message : "The server cannot be reached. Trying again …";
      show("Not found", element("h1", {}, gone ? "There is no such question" : "Not reached"),
        element("p", {}, gone ? "It may have been removed, or belong to somebody else." : why),
        element("p", {}, element("a", { href: "/" }, "All open questions")));
      if (isThere) return;
      await new Promise((wake) => setTimeout(wake, RETRY_MS));
    }
  }
  const page = new Page(id, execution);
  const events = `/api/executions/${encodeURIComponent(execution)}/events`;
  try {
    await follow(events, (event) => page.hear(event), new AbortController().signal, (is) => page.connected(is));
  } catch (problem) {
    page.status.textContent = problem.message;
  }
}

class Page {
  story = new Story();
  cards = new Map(); // by question: {state, node}
  status = element("p", { class: "quiet" });
  questions = element("div", {});
  end = element("div", {});
  script = element("div", {});
  done = element("div", {});
  scheduled = false;
  marked = null;

  constructor(id, execution) {
    this.id = id;
    this.execution = execution;
    show("Question",
      element("h1", {}, "A decision is needed"), this.status, this.questions, this.end,
      element("section", { class: "card" }, element("h2", {}, "The script"), this.script),
      element("section", { class: "card" }, element("h2", {}, "What it did so far"), this.done),
      element("p", { class: "quiet" }, "Execution ", element("code", {}, execution)));
  }

  connected(is) {
    this.status.textContent = is || this.story.outcome ? "" : "Not connected. Trying again …";
    // Answers that could not be sent meanwhile can be sent now: the old error messages are removed.
    if (is) for (const old of this.questions.querySelectorAll("[data-unreached]")) old.hidden = true;
    // Loads questions whose details could not be read while the connection was lost.
    if (is && [...this.cards.values()].some((card) => card.state === "failed")) this.draw();
  }

  hear(event) {
    this.story.hear(event);
    if (this.scheduled) return;
    this.scheduled = true;
    // Many events in one batch are drawn once.
    setTimeout(() => { this.scheduled = false; this.draw(); }, 30);
  }

  draw() {
    const { story } = this;
    const open = story.open(this.id);
    this.drawQuestions(open);
    this.drawScript(open);
    this.done.replaceChildren(done(story.done));
    document.querySelector("h1").textContent = story.outcome
      ? "The execution is over"
      : open.length ? "A decision is needed" : "Nothing is asked now";
    if (story.outcome && !this.end.hasChildNodes()) this.drawEnd(story.outcome);
  }

  drawQuestions(open) {
    const isOpen = new Set(open.map((question) => question.id));
    const closed = [...this.story.questions.values()].filter((question) => !isOpen.has(question.id));
    const shown = [...open, ...closed.sort((a, b) => (b.id === this.id) - (a.id === this.id))];
    for (const question of shown) {
      const state = isOpen.has(question.id) ? "open" : question.answer ? "answered" : "expired";
      if (this.cards.get(question.id)?.state !== state) this.replace(question, state);
    }
    // Nodes that are already in place are not touched: the person may be typing there.
    shown.forEach((question, at) => {
      const { node } = this.cards.get(question.id);
      if (this.questions.children[at] !== node) this.questions.insertBefore(node, this.questions.children[at] ?? null);
    });
  }

  replace(question, state) {
    const call = this.story.calls.get(question.call) ?? { tool: "", args: null };
    const before = this.cards.get(question.id)?.node;
    const card = { state, node: null };
    this.cards.set(question.id, card);
    const put = (node) => {
      (card.node ?? before)?.replaceWith(node);
      card.node = node;
    };
    if (state === "answered") put(closedCard(question, call, time));
    else if (state === "expired") put(expiredCard(question, call));
    else {
      put(element("article", { class: "card", "data-question": question.id }, "…"));
      openCard(question, call).then((node) => { if (this.cards.get(question.id) === card) put(node); },
        (problem) => {
          card.state = "failed";
          this.status.textContent = problem instanceof Refused ? problem.message : "Not connected. Trying again …";
        });
    }
  }

  drawScript(open) {
    const waiting = new Set(open.map((question) => this.story.calls.get(question.call)?.line).filter(Boolean));
    const mark = `${this.story.code.length} ${[...waiting].sort().join()}`;
    if (mark === this.marked) return;
    this.marked = mark;
    this.script.replaceChildren(script(this.story.code, waiting));
  }

  drawEnd(outcome) {
    const words = { completed: "It completed.", failed: "It failed.", cancelled: `It was cancelled by ${outcome.by}.` };
    const detail = outcome.status === "failed" ? outcome.error : outcome.result;
    this.end.append(element("section", { class: "card" }, element("h2", {}, words[outcome.status]),
      detail === undefined ? null : element("div", { class: "boxed", tabindex: 0, role: "region", "aria-label": "Result" }, value(detail)),
      element("p", {}, element("a", { href: "/" }, "All open questions"))));
    say(words[outcome.status]);
  }
}
