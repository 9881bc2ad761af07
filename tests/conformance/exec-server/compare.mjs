// Compares what a server was seen to do (facts.json of scenarios.mjs) with what a peer was recorded to do.
//   node compare.mjs DIALECT OURS/facts.json
// Every difference must stand in differences.json, with its reason; an entry that explains nothing is an error, too.
import fs from "node:fs";
const [dialect, file] = process.argv.slice(2);
const here = (name) => JSON.parse(fs.readFileSync(new URL(name, import.meta.url)));
// Members that only we send. Clients of both dialects ignore members that they do not know.
const added = { codex: ["droppedBytes", "firstSeq"], seed: ["droppedBytes", "firstSeq", "closed", "failure", "sandboxDenied", "status"] }[dialect];
// stdout and stderr are two pipes: which of two things written at once arrives first is nobody's promise. The
// order within a stream is, and so are the numbers.
const byStream = (chunks) => {
  const sorted = [...chunks].sort((a, b) => (a.stream < b.stream ? -1 : a.stream > b.stream ? 1 : 0));
  return sorted.map((chunk, at) => ({ ...chunk, seq: chunks[at].seq }));
};
const isChunks = (list) => list.length > 0 && list.every((item) => item && typeof item === "object" && "stream" in item && "seq" in item);
const plain = (value) => {
  if (Array.isArray(value)) return (isChunks(value) ? byStream(value) : value).map(plain);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).filter((k) => !added.includes(k)).sort().map((k) => [k, plain(value[k])]));
};
const normal = (value) => {
  let text = String(value).replace(/ \d+ms$/, "");
  try { text = JSON.stringify(plain(JSON.parse(text))); } catch {}
  return text.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "UUID").replace(/x0\.\d+/g, "x").replace(/hfs-\d+/g, "hfs").replace(/ \d+ms$/, "");
};
const numbered = (facts) => {
  const seen = new Map();
  return facts.map(([scenario, key, value]) => {
    const name = `${scenario} | ${key}`.replace(/hfs-\d+/g, "hfs"); const n = seen.get(name) ?? 0; seen.set(name, n + 1);
    return [n ? `${name} (${n + 1})` : name, value];
  });
};
const ours = numbered(JSON.parse(fs.readFileSync(file)).map((f) => [f.scenario, f.key, f.value ?? null]));
const theirs = new Map(numbered(here(`facts.${dialect}.json`)));
const rules = here("differences.json").filter((r) => r.dialects.includes(dialect)).map((r) => ({ ...r, pattern: new RegExp(r.where), says: r.ours && new RegExp(r.ours), used: 0 }));
let wrong = 0;
for (const [name, value] of ours) {
  const [a, b] = [normal(theirs.get(name)), normal(value)];
  if (a === b) continue;
  const rule = rules.find((r) => r.pattern.test(name) && (!r.says || r.says.test(b)));
  if (rule) { rule.used++; continue; }
  wrong++; console.log(`UNEXPLAINED ${name}\n  recorded: ${a}\n  ours:     ${b}`);
}
const ran = new Set(ours.map(([name]) => name.split(" | ")[0]));
for (const r of rules) if (!r.used && !r.varies) { wrong++; console.log(`STALE ${r.where}: ${r.reason}`); }
console.log(`${ours.length} facts of ${ran.size} scenarios, ${wrong} unexplained or stale`);
process.exit(wrong ? 1 : 0);
