// Builds elements. Text is inserted as text: no output of a program can become markup.

import { serverNow } from "./session.js";

export function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (value === true) {
      made.setAttribute(name, "");
    } else if (value !== false && value !== undefined && value !== null) {
      made.setAttribute(name, String(value));
    }
  }
  made.append(...present(children));
  return made;
}

function present(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined);
}

// Announces a message to screen readers.
export function say(sentence) {
  document.getElementById("said").textContent = sentence;
}

export function show(title, ...children) {
  document.title = `${title} – Airlock`;
  document.getElementById("main").replaceChildren(...present(children));
}

// A time as its age by the server's clock, because this machine's may differ. The date is in the tooltip.
export function time(ms) {
  const at = new Date(ms);
  return element("time", { datetime: at.toISOString(), title: at.toLocaleString() }, age(ms, serverNow()));
}

// How often the ages on the page are updated.
const AGES_MS = 15_000;

setInterval(() => {
  for (const node of document.querySelectorAll("time")) node.textContent = age(Date.parse(node.dateTime), serverNow());
}, AGES_MS);

const UNITS = [["day", 86_400_000], ["hour", 3_600_000], ["minute", 60_000]];

// "3 minutes ago", "in 6 days".
export function age(ms, now) {
  const away = Math.abs(now - ms);
  const [unit, length] = UNITS.find(([, length]) => away >= length) ?? ["second", 1000];
  const n = Math.floor(away / length);
  if (unit === "second" && n < 5) return "just now";
  const words = `${n} ${unit}${n === 1 ? "" : "s"}`;
  return ms > now ? `in ${words}` : `${words} ago`;
}
