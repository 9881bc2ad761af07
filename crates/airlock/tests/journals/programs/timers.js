// Timers in order, one that is cleared, an abort, and an interval.
const seen = [];
const wait = (ms, what) => new Promise((done) => setTimeout(() => { seen.push(what); done(); }, ms));
clearTimeout(setTimeout(() => seen.push("never"), 1));
await Promise.all([wait(20, "second"), wait(5, "first")]);
let n = 0;
await new Promise((done) => { const every = setInterval(() => { n += 1; if (n === 3) { clearInterval(every); done(); } }, 2); });
const signal = AbortSignal.timeout(3);
await new Promise((done) => signal.addEventListener("abort", done));
queueMicrotask(() => seen.push("micro"));
await null;
console.log(seen.join(), n, signal.reason.name, Math.random());
return seen;
