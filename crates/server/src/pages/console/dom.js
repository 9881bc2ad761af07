// Builds elements. Text goes in as text: nothing that a program says can become markup.

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

// Tells people who listen rather than look.
export function say(sentence) {
  document.getElementById("said").textContent = sentence;
}

export function show(title, ...children) {
  document.title = `${title} – Airlock`;
  document.getElementById("main").replaceChildren(...present(children));
}

export function time(ms) {
  const at = new Date(ms);
  return element("time", { datetime: at.toISOString() }, at.toLocaleString());
}
