// The page where a person enters a secret that no agent sees. The code after # is valid once.

const state = location.hash.slice(1);
const about = document.getElementById("about");
const next = document.getElementById("next");
const form = document.getElementById("form");
const address = `/api/handoffs/${encodeURIComponent(state)}`;

// Removes the code from the address bar and from the history.
history.replaceState(null, "", location.pathname);

function say(text) {
  about.textContent = text;
}

// Labels for the fields of connections.
const NAMES = { value: "Secret", user: "User name", password: "Password", token: "Token", name: "Name" };

function field(name) {
  const label = document.createElement("label");
  label.className = "field";
  label.textContent = NAMES[name] ?? name;
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
    next.textContent = "What waited for this secret goes on by itself. You can close this page.";
    say("The secret is stored.");
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
  const { connection, api, host, label, fields } = await answer.json();
  const where = host ? ` at ${host}` : "";
  say(`For ${api ?? connection}${where}: the connection ${connection}${label ? ` (${label})` : ""}.`);
  next.textContent = "Only this server sees what you enter. It is stored encrypted, and sent "
    + `${host ? `to ${host}` : "to that source"} with calls of this connection. The link works once; what waits for the secret then goes on.`;
  const button = document.createElement("button");
  button.textContent = "Save";
  button.className = "yes";
  form.append(...fields.map(field), button);
  form.hidden = false;
  form.addEventListener("submit", send);
  form.querySelector("input")?.focus();
}

begin().catch(() => say("The server cannot be reached."));
