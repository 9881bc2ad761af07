// console: what is printed becomes a line of the execution's log. There are no timers on it: the clock stands still
// while a program computes. What is rarely called is in console_more.
(function (kit) {
  "use strict";

  const { LINE_CHARS_MAX } = kit;
  const { indexOf, slice, toWellFormed } = kit.String;
  const { show } = kit.load("show");

  const GROUPS_MAX = 100; // beyond which indentation does not grow

  const attempt = (value, text) => {
    try {
      return text(value);
    } catch {
      return "[a value that cannot be shown]";
    }
  };
  // Not replaceAll: that asks the text for a method, which is the guest's to give.
  const eachLine = (text, separator) => {
    let joined = "", done = 0;
    for (let at = indexOf(text, "\n"); at >= 0; at = indexOf(text, "\n", done)) {
      joined += slice(text, done, at) + separator;
      done = at + 1;
    }
    return joined + slice(text, done);
  };
  const plain = (value) => attempt(value, (it) => show(it, undefined));
  const line = (args, from) => {
    let text = "", at = from;
    if (args.length - from > 1 && typeof args[from] === "string" && indexOf(args[from], "%") >= 0) {
      const first = kit.load("console_more").formatted(args, from);
      text = first.text;
      at = first.used;
    }
    for (; at < args.length && text.length <= LINE_CHARS_MAX; at += 1) {
      text += at === from ? plain(args[at]) : " " + plain(args[at]);
    }
    return text;
  };

  let indent = "";
  const indented = (text) => (indent === "" ? text : indent + eachLine(text, "\n" + indent));
  const print = (level, text) => {
    const more = text.length - LINE_CHARS_MAX;
    const shown = more > 0 ? slice(text, 0, LINE_CHARS_MAX) + "... " + more + " more characters" : text;
    kit.log(level, toWellFormed(indented(shown)));
  };

  const group = (args) => {
    if (args.length > 0) print("log", line(args, 0));
    if (indent.length < GROUPS_MAX * 2) indent += "  ";
  };
  const more = (name) => (args) => kit.load("console_more")[name](args);

  return {
    __proto__: null,
    attempt,
    eachLine,
    indented,
    line,
    print,
    log: (args) => print("log", line(args, 0)),
    info: (args) => print("info", line(args, 0)),
    warn: (args) => print("warn", line(args, 0)),
    error: (args) => print("error", line(args, 0)),
    debug: (args) => print("debug", line(args, 0)),
    dirxml: (args) => print("log", line(args, 0)),
    dir: more("dir"),
    table: more("table"),
    assert: more("assert"),
    count: more("count"),
    countReset: more("countReset"),
    trace: more("trace"),
    group,
    groupCollapsed: group,
    groupEnd: () => {
      indent = slice(indent, 2);
    },
  };
})
