// Timers are the host's: it says when one has fired, and what time it is then.
(function (kit) {
  "use strict";

  const { host, apply, create, trunc, isSafeInteger } = kit;
  const { self: NativeNumber } = kit.Number;
  const { self: NativeTypeError } = kit.TypeError;
  const { crashed } = kit.load("errors");
  const { defer } = host;

  const DELAY_MS_MAX = 9007199254740991; // the largest that is still exact
  const NOTHING = [];

  const timers = create(null);
  const intervals = create(null);
  let nTimers = 0;

  // As in Node: less than a millisecond, and what is no number, is one millisecond.
  const delayOf = (delay) => {
    const ms = trunc(NativeNumber(delay));
    return ms >= 1 ? (isSafeInteger(ms) ? ms : DELAY_MS_MAX) : 1;
  };
  const set = (run, args, delay, interval) => {
    if (typeof run !== "function") throw new NativeTypeError("a timer needs a function to call");
    const ms = delayOf(delay);
    nTimers += 1;
    const timer = { __proto__: null, run, args, ms, interval: interval === 0 ? nTimers : interval };
    timers[nTimers] = timer;
    if (timer.interval !== undefined) intervals[timer.interval] = nTimers;
    host.timerSet(nTimers, ms);
    return nTimers;
  };
  const clear = (handle) => {
    if (typeof handle !== "number") return;
    const id = intervals[handle] === undefined ? handle : intervals[handle];
    delete intervals[handle];
    if (timers[id] === undefined) return;
    delete timers[id];
    host.timerCleared(id);
  };
  const attempt = (run, args) => {
    try {
      apply(run, undefined, args);
    } catch (error) {
      crashed(error);
    }
  };
  const fire = (id) => {
    const timer = timers[id];
    delete timers[id];
    attempt(timer.run, timer.args);
    if (timer.interval !== undefined && intervals[timer.interval] === id) {
      set(timer.run, timer.args, timer.ms, timer.interval);
    }
  };

  return {
    __proto__: null,
    fire,
    setTimeout: (run, delay, ...args) => set(run, args, delay, undefined),
    setInterval: (run, delay, ...args) => set(run, args, delay, 0),
    clearTimeout: (handle) => clear(handle),
    clearInterval: (handle) => clear(handle),
    queueMicrotask: (run) => {
      if (typeof run !== "function") throw new NativeTypeError("queueMicrotask needs a function to call");
      defer(() => attempt(run, NOTHING));
    },
  };
})
