// The page where a person enters a secret that no agent sees. The code behind # is good once.

const state = location.hash.slice(1);
const about = document.getElementById("about");
const form = document.getElementById("form");
const address = `/api/handoffs/${encodeURIComponent(state)}`;

// The code goes from the address bar and from the history.
history.replaceState(null, "", location.pathname);

function say(text) {
  about.textContent = text;
}

function field(name) {
  const label = document.createElement("label");
  label.textContent = name;
  const input = document.createElement("input");
  input.name = name;
  input.required = true;
  input.type = name === "user" ? "text" : "password";
  input.autocomplete = "off";
  label.append(input);
  return label;
}

async function send(event) {
  event.preventDefault();
  const values = Object.fromEntries(new FormData(form));
  const body = JSON.stringify({ values });
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(address, { method: "POST", headers, body });
  if (answer.ok) {
    form.remove();
    say("Done. You can close this page.");
  } else {
    say((await answer.json()).message ?? "That did not work.");
  }
}

async function begin() {
  const answer = await fetch(address);
  if (!answer.ok) {
    say("Nobody waits for a secret here any more. Ask for a new link.");
    return;
  }
  const { connection, label, fields } = await answer.json();
  say(`For the connection ${connection}${label ? ` (${label})` : ""}. Only this server sees what you enter.`);
  const button = document.createElement("button");
  button.textContent = "Save";
  form.append(...fields.map(field), button);
  form.hidden = false;
  form.addEventListener("submit", send);
  form.querySelector("input")?.focus();
}

begin().catch(() => say("The server cannot be reached."));
