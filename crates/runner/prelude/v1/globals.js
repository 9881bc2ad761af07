// What the guest sees, and what the host holds.

const LINE_CHARS_MAX = 65536; // of one call of console
kit.LINE_CHARS_MAX = LINE_CHARS_MAX;
const { indexOf, toWellFormed } = kit.String;
kit.world = world;
kit.log = host.log;
kit.outside = "tools.*"; // where a program finds what is not in its world
const seed = { __proto__: null, a: 0, b: 0, c: 0, d: 0, e: 0, f: 0, g: 0, h: 0 };
kit.seed = seed; // what randomness follows from
kit.hosted = undefined; // how a foreign host's programs print, if it is one

// A program that prints nothing but texts and numbers needs nothing that shows values.
const quick = (args) => {
  let line = "";
  for (let at = 0; at < args.length; at += 1) {
    const value = args[at];
    if (typeof value === "string" ? indexOf(value, "%") >= 0 : typeof value !== "number" || value === 0) return undefined;
    line += at === 0 ? value : " " + value;
  }
  return line.length <= LINE_CHARS_MAX ? toWellFormed("" + line) : undefined;
};
const console = {};
for (const name of "log info warn error debug table dir dirxml assert count countReset trace group groupCollapsed groupEnd".split(" ")) {
  const plain = "log info warn error debug".includes(name);
  console[name] = {
    [name](...args) {
      if (plain && kit.hosted !== undefined) {
        kit.hosted.print(name, args);
        return;
      }
      const line = plain && loaded.console === undefined ? quick(args) : undefined;
      if (line === undefined) load("console")[name](args);
      else kit.log(name, line);
    },
  }[name];
}
define(console, Symbol.toStringTag, "console");
define(world, "console", console);
define(world, "Date", GuestDate);
define(world, "performance", { now: () => clock.now - clock.startedAt, get timeOrigin() { return clock.startedAt; } });
define(Math, "random", { random: () => load("random").random() }.random);

// Part and its globals, `part:name name;part:name`: later versions have more of them.
for (const entry of host.globals.split(";")) {
  const [part, names] = entry.split(":");
  for (const name of names.split(" ")) lazily(name, part);
}

delete world.WeakRef;
delete world.FinalizationRegistry;
delete world.Atomics;
delete world.SharedArrayBuffer;
delete world.InternalError;

// The call sites that `Error.prepareStackTrace` receives would hand out the functions on the stack, ours among them.
Error.prepareStackTrace = (error, sites) => getPrototypeOf(sites[0]);
delete new Error().stack.getFunction;
Error.prepareStackTrace = undefined;
delete kit.InternalErrorPrototype.constructor;

// What later versions change in what is here already.
for (let overlay = 0; overlay < host.nOverlays; overlay += 1) {
  const setup = host.setup(overlay);
  if (setup !== undefined && setup !== null) setup(kit);
}

return {
  start: (at, a, b, c, d, e, f, g, h) => {
    clock.now = clock.startedAt = at;
    seed.a = a;
    seed.b = b;
    seed.c = c;
    seed.d = d;
    seed.e = e;
    seed.f = f;
    seed.g = g;
    seed.h = h;
    if (loaded.random !== undefined) loaded.random.seed();
  },
  furnish: (lines, chars) => load("hosted").begin(lines, chars),
  provide: (name, tools) => load("hosted").provide(name, tools),
  resolveCall: (id, at, value) => {
    if (at !== undefined) clock.now = at;
    load("tools").resolveCall(id, value);
  },
  rejectCall: (id, at, code, message, name, details) => {
    if (at !== undefined) clock.now = at;
    load("tools").rejectCall(id, code, message, name, details);
  },
  fire: (id, at) => {
    clock.now = at;
    load("timers").fire(id);
  },
  // A session's own functions, for its host.
  evaluate: (session, elementsMax, charsMax) => load("evaluate")(session, elementsMax, charsMax),
  describe: (error) => load("errors").describe(error),
  describeCrash: () => load("errors").describeCrash(),
  // What most programs touch, for a world that is copied rather than built.
  warm: () => {
    for (const part of ["errors", "tools", "timers", "random", "show", "show_kinds", "console"]) load(part);
  },
};
