// Asks for the code that elevates this tab, if an action requires more rights than the session has.

import { Refused, elevate } from "./api.js";
import { element } from "./dom.js";

const RAISING = new Set(["run", "admin"]);

// Runs `action`. If it is refused for a missing scope, shows a form in `place` and runs it again with the code.
// Rejects as `action` does; resolves to false if the person closes the form.
export async function withElevation(place, action) {
  try {
    await action();
    return true;
  } catch (problem) {
    if (!(problem instanceof Refused) || problem.status !== 403 || !RAISING.has(problem.body?.scope)) throw problem;
    if (!(await askForCode(place, problem.body.scope))) return false;
    await action();
    return true;
  }
}

let nextId = 0;

function askForCode(place, scope) {
  return new Promise((resolve) => {
    const id = `elevation-${nextId++}`;
    const input = element("input", { id, name: "elevation", type: "password", autocomplete: "off", required: true });
    const problem = element("p", { class: "problem", role: "alert", hidden: true });
    const close = (isRaised) => { place.replaceChildren(); resolve(isRaised); };
    const confirm = async () => {
      problem.hidden = true;
      try {
        if (input.value.trim() === "") throw new Error("Enter a code or a token.");
        await elevate(input.value.trim());
        close(true);
      } catch (refused) {
        problem.textContent = refused instanceof Refused && refused.status === 401 ? "This token is not known." : refused.message;
        problem.hidden = false;
        input.focus();
      }
    };
    // The Enter key must not answer the question that contains this form.
    input.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); confirm(); } });
    place.replaceChildren(element("fieldset", { class: "card" },
      element("legend", {}, `This needs the scope ${scope}`),
      element("p", {}, "Run ", element("code", {}, "airlock sign-in --admin"),
        " on the server's machine and enter the code that it prints, or enter a token with that scope. This tab may then act with it for an hour."),
      element("label", { for: id }, "Code or token"), input, problem,
      element("div", { class: "buttons" },
        element("button", { class: "yes", type: "button", on: { click: confirm } }, "Continue"),
        element("button", { type: "button", on: { click: () => close(false) } }, "Cancel"))));
    input.focus();
  });
}
