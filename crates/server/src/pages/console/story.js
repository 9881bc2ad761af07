// The state of an execution, computed only from its events.

// Maximum length of a call's progress text; its end is shown.
const SAID_CHARS_MAX = 4000;

export class Story {
  code = "";
  caller = "";
  done = []; // what the program did, in order: {kind, …}
  calls = new Map();
  questions = new Map();
  outcome = null;
  last = 0;

  hear(event) {
    if (event.seq <= this.last) return;
    this.last = event.seq;
    const on = {
      started: () => { this.code = event.code; this.caller = event.caller; },
      log: () => this.done.push({ kind: "log", level: event.level, text: event.line }),
      emitted: () => this.done.push({ kind: "emitted", item: event.item }),
      call: () => this.#call(event),
      question: () => this.questions.set(event.executionId, { ...event, id: event.executionId, answer: null }),
      answer: () => this.#answer(event),
      progress: () => { const call = this.calls.get(event.call); if (call) call.said = (call.said + event.text).slice(-SAID_CHARS_MAX); },
      settled: () => { const call = this.calls.get(event.call); if (call) call.settled = event; },
      finished: () => { this.outcome = event; },
    }[event.type];
    on?.();
  }

  #call(event) {
    const call = { kind: "call", ...event, said: "", settled: null };
    this.calls.set(event.call, call);
    this.done.push(call);
  }

  // If a person changed the arguments, they are those of the call from then on.
  #answer(event) {
    const asked = this.questions.get(event.executionId);
    if (asked) asked.answer = event;
    const call = this.calls.get(event.call);
    if (call && event.arguments) { call.own ??= call.args; call.args = event.arguments; }
  }

  // Open questions; the requested one comes first.
  open(first) {
    if (this.outcome) return [];
    const open = [...this.questions.values()].filter((question) => question.answer === null);
    return open.sort((a, b) => (b.id === first) - (a.id === first) || a.call - b.call);
  }
}
