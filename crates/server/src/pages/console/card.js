// One question and its buttons.

import { get, post } from "./api.js";
import { element, say } from "./dom.js";
import { withElevation } from "./elevation.js";
import { editor } from "./editor.js";
import { form } from "./form.js";
import { value } from "./show.js";

const WORDS = { accept: "approved", decline: "declined", cancel: "cancelled" };

// An open question.
export async function openCard(question, call) {
  const { interaction } = (await get(`/api/executions/${question.id}`)).body.structured ?? {};
  const fields = form(interaction?.requestedSchema);
  const again = element("input", { type: "checkbox", name: "remember" });
  // An edited call is approved once: the decision is not remembered.
  const edit = interaction?.editable
    ? editor(interaction.args, (isChanged) => { again.disabled = isChanged; if (isChanged) again.checked = false; })
    : null;
  const problem = element("p", { class: "problem", role: "alert", hidden: true });
  const buttons = element("div", { class: "buttons" });
  const raising = element("div", {});
  const answer = async (action) => {
    problem.hidden = true;
    try {
      const body = { action };
      if (action === "accept" && !fields.isEmpty) body.content = fields.read();
      if (action === "accept" && again.checked) body.remember = "execution";
      if (action === "accept" && edit?.isChanged()) body.arguments = edit.read();
      for (const button of buttons.children) button.disabled = true;
      // The outcome arrives with the events: this request does not wait for it.
      const isSent = await withElevation(raising, () => post(`/api/executions/${question.id}/resume?wait=0`, body));
      if (isSent) say(`You ${WORDS[action]} ${call.tool}.`);
      else for (const button of buttons.children) button.disabled = false;
    } catch (failed) {
      // The browser's own messages for a lost connection, such as "Failed to fetch", do not help the person.
      const isLost = failed instanceof TypeError;
      problem.textContent = isLost ? "The server was not reached, and your answer may not have arrived. Try again." : failed.message;
      problem.toggleAttribute("data-unreached", isLost);
      problem.hidden = false;
      for (const button of buttons.children) button.disabled = false;
    }
  };
  buttons.append(
    element("button", { class: "yes", type: "submit" }, question.kind === "approval" ? "Approve" : "Send"),
    element("button", { class: "no", type: "button", on: { click: () => answer("decline") } }, "Decline"),
    element("button", { type: "button", on: { click: () => answer("cancel") } }, "Cancel"));
  const submit = (event) => { event.preventDefault(); answer("accept"); };
  return frame(question, call, { isForm: !fields.isEmpty }, [
    interaction?.url ? link(interaction.url) : null,
    element("form", { novalidate: true, on: { submit } }, edit?.node, fields.node,
      question.kind === "approval"
        ? element("label", { class: "choice" }, again, "Do not ask again for this tool in this execution")
        : null,
      problem, raising, buttons),
  ]);
}

// An answered question, with its author and time.
export function closedCard(question, call, time) {
  const { action, by, at, arguments: edited } = question.answer;
  return frame(question, edited ? { ...call, args: call.own } : call, { isForm: question.kind === "form" }, [
    element("p", { class: action === "accept" ? "good" : "problem" },
      `${capital(WORDS[action] ?? action)} by ${by}, `, time(at), edited ? ", with other arguments:" : "."),
    edited ? element("div", { class: "boxed changed", tabindex: 0, role: "region", "aria-label": "Changed arguments" }, value(edited)) : null,
  ]);
}

const capital = (word) => word[0].toUpperCase() + word.slice(1);

// A question that can no longer be answered because its execution is over.
export function expiredCard(question, call) {
  return frame(question, call, { isForm: question.kind === "form" }, element("p", { class: "problem" }, "Nobody answered in time: the execution is over."));
}

// The form's fields show the question. The arguments of the tool call, often the form's own schema, are folded below
// them.
function frame(question, call, { isForm }, inside) {
  const [title, ...rest] = question.message.split("\n");
  // The arguments follow the message; they are shown below.
  const more = rest.join("\n").split("\nArguments:\n")[0].trim();
  return element("article", { class: "card", "data-question": question.id, "aria-label": title },
    element("h2", {}, title),
    more ? element("pre", {}, more) : null,
    element("p", {}, element("code", { class: "address" }, `tools.${call.tool}`)),
    isForm ? null : element("h3", {}, "Arguments"), isForm ? null : args(call),
    inside,
    isForm ? element("details", {}, element("summary", {}, "What the tool was called with"), args(call)) : null);
}

const args = (call) =>
  element("div", { class: "boxed", tabindex: 0, role: "region", "aria-label": "Arguments" }, value(call.args));

// Only web addresses are linked: an address such as javascript: is shown as text.
function link(url) {
  const isPage = /^https?:\/\//i.test(url);
  return element("p", {}, isPage
    ? element("a", { class: "button", href: url, target: "_blank", rel: "noopener noreferrer" }, "Open the page")
    : null, " ", element("code", {}, url));
}
