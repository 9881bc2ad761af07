// Compares what a server was seen to do (facts.json of scenarios.mjs) with what a peer was recorded to do.
//   node compare.mjs DIALECT OURS/facts.json [ALL.json]
// Every difference must stand in differences.json under its reason: the fact by its name, and what ours is, as it
// stands or, where it begins with ^, as a pattern. An entry that explains nothing is an error, too.
// ALL.json gets every difference: the fact, what was recorded, what ours is.
import fs from "node:fs";
const [dialect, file, write] = process.argv.slice(2);
const here = (name) => JSON.parse(fs.readFileSync(new URL(name, import.meta.url)));
// Members that only we send. Clients of both dialects ignore members that they do not know.
const added = { codex: ["droppedBytes", "firstSeq"], seed: ["droppedBytes", "firstSeq", "closed", "failure", "sandboxDenied", "status"] }[dialect];
// stdout and stderr are two pipes: which of two things written at once arrives first is nobody's promise. The
// order within a stream is, and so are the numbers.
const byStream = (chunks) => {
  const sorted = [...chunks].sort((a, b) => (a.stream < b.stream ? -1 : a.stream > b.stream ? 1 : 0));
  return sorted.map((chunk, at) => ({ ...chunk, seq: chunks[at].seq }));
};
const has = (list, ...keys) => list.length > 0 && list.every((item) => item && typeof item === "object" && keys.every((key) => key in item));
// Folders are listed in no order, answers carry the date of the day, files the time they were made.
const byText = (list) => [...list].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
const listed = (list) => has(list, "stream", "seq") ? byStream(list) : has(list, "fileName") || has(list, "path", "kind") ? byText(list) : has(list, "name", "value") ? list.filter((header) => header.name !== "date") : list;
const member = (key, value) => (/^(modified|created)AtMs$/.test(key) && value ? "TIME" : key === "pid" ? "PID" : plain(value));
const plain = (value) => {
  if (Array.isArray(value)) return listed(value).map(plain);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).filter((k) => !added.includes(k)).sort().map((k) => [k, member(k, value[k])]));
};
// Numbers of processes, pipes and terminals are another time's. A shell blocks signals for a moment when it starts
// a program, and holds the pipes of a pipeline until the last of it is started: sometimes it is seen to. That a
// program is born with three descriptors is shown by a test of the processes, where no pipeline is in the way.
const normal = (key, value) => {
  let text = String(value).replace(/ \d+ms$/, "");
  try { text = JSON.stringify(plain(JSON.parse(text))); } catch {}
  text = text.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "UUID").replace(/x0\.\d+/g, "x").replace(/hfs-\d+/g, "hfs");
  if (/^22-|^12-pty-basic \| pty/.test(key)) {
    const pids = new Map(); const pid = (n) => { if (!pids.has(n)) pids.set(n, `PID${pids.size + 1}`); return pids.get(n); };
    text = text.replace(/ *\d{2,}( +\d{2,}){3}/g, (row) => row.trim().split(/ +/).map(pid).join(" "));
    text = text.replace(/pipe:\[\d+\]/g, "pipe:[N]").replace(/pts\/\d+/g, "pts/N").replace(/SigBlk:\t[0-9a-f]+/g, "SigBlk:\tB");
    text = text.replace(/^[3-9] -> pipe:\[N\]\r?\n/gm, "");
  }
  if (/waited ms|exited after ms|long read answered after ms/.test(key)) text = "TIME";
  return text;
};
// When a client is back is a matter of moments: how much it then reads at once, and how much it is told afterwards. That
// the two leave no gap between them is not, nor that the end is told last.
const rejoined = (facts) => {
  const read = facts.find(([scenario, key]) => scenario === "32-ws-resume" && key === "read after resume from last seq");
  const told = facts.find(([scenario, key]) => scenario === "32-ws-resume" && key === "events pushed after resume");
  if (!read || !told) return facts;
  const hasGap = (seqs) => seqs.some((seq, at) => at > 0 && seq !== seqs[at - 1] + 1);
  const seqs = JSON.parse(read[2]); const events = told[2].split(" ").map((event) => event.split("#"));
  const later = events.map(([, seq]) => Number(seq)); const end = events.slice(-2).map(([word]) => word).join(" ");
  if (!seqs.length || hasGap(seqs) || hasGap(later) || later[0] > seqs.at(-1) + 1 || end !== "exited closed") return facts;
  const without = { "read after resume from last seq": `from ${seqs[0]} without a gap`, "events pushed after resume": "the rest without a gap, exited, closed" };
  return facts.map((fact) => (fact === read || fact === told ? [fact[0], fact[1], without[fact[1]]] : fact));
};
const numbered = (facts) => {
  const seen = new Map();
  return facts.map(([scenario, key, value]) => {
    // The script cuts long names off, wherever a number of a process in them ends.
    const name = `${scenario} | ${key}`.replace(/hfs-\d+/g, "hfs").slice(0, 140); const n = seen.get(name) ?? 0; seen.set(name, n + 1);
    return [n ? `${name} (${n + 1})` : name, value];
  });
};
const ours = numbered(rejoined(JSON.parse(fs.readFileSync(file)).map((f) => [f.scenario, f.key, f.value ?? null])));
const theirs = new Map(numbered(rejoined(here(`facts.${dialect}.json`))));
const known = new Map();
for (const { dialects, reason, varies, facts } of here("differences.json")) {
  if (!dialects.includes(dialect)) continue;
  for (const [name, says] of Object.entries(facts)) {
    if (known.has(name)) throw new Error(`${name} is explained twice`);
    known.set(name, { says, reason, varies, used: 0 });
  }
}
const fits = (says, b) => (says.startsWith("^") ? new RegExp(says).test(b) : says === b);
let wrong = 0;
for (const [name, value] of ours) {
  const [a, b] = [normal(name, theirs.get(name)), normal(name, value)];
  if (a === b) continue;
  const entry = known.get(name);
  if (entry && fits(entry.says, b)) { entry.used++; continue; }
  wrong++; console.log(`UNEXPLAINED ${name}\n  recorded: ${a}\n  ours:     ${b}${entry ? `\n  expected: ${entry.says}` : ""}`);
}
const ran = new Set(ours.map(([name]) => name.split(" | ")[0]));
for (const [name, entry] of known) if (!entry.used && !entry.varies && ran.has(name.split(" | ")[0])) { wrong++; console.log(`STALE ${name}: ${entry.reason}`); }
if (write) fs.writeFileSync(write, JSON.stringify(ours.map(([name, value]) => [name, normal(name, theirs.get(name)), normal(name, value)]).filter(([, a, b]) => a !== b), null, 1));
console.log(`${ours.length} facts of ${ran.size} scenarios, ${wrong} unexplained or stale`);
process.exit(wrong ? 1 : 0);
