// Everything that a program can show, hand out and return without a call.
const url = new URL("https://user:p%40ss@例え.テスト:8443/a/../b?q=1&q=2#ä");
url.searchParams.append("r", "ü & ö");
console.log("%s is %d and %o", "x", 42, { deep: { deeper: [1, { last: true }] } }, new Map([[1, new Set("ab")]]));
console.table([{ a: 1, b: "two" }, { a: 3, c: null }]);
console.error(new TypeError("shown", { cause: new Error("inner") }).message);
console.log([new Date(0), /x/giu, 10n ** 30n, -0, Symbol("s"), () => 1, class A {}, new Uint8Array(3), Promise.resolve(1)]);
emit({ text: new TextDecoder().decode(new TextEncoder().encode("größe")), random: [Math.random(), crypto.randomUUID()] });
const bytes = crypto.getRandomValues(new Uint8Array(8));
const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
const copy = structuredClone({ when: new Date(5), again: new Map([["k", [1, 2]]]), bytes });
const target = new EventTarget();
let heard = "";
target.addEventListener("e", (event) => { heard += event.detail; });
target.dispatchEvent(new CustomEvent("e", { detail: "!" }));
return {
  href: url.href, host: url.host, all: url.searchParams.getAll("q"), digest: [...digest], copied: copy.when.toISOString(), heard,
  names: Object.getOwnPropertyNames(globalThis).length, now: Date.now(), zone: new Date(0).getTimezoneOffset(),
  numbers: [0.1 + 0.2, Math.sin(1e6), Math.pow(1.1, 77), (1e21).toString(), (25).toString(36)],
  texts: ["ß".toUpperCase(), "İ".toLowerCase().length, "é".normalize("NFD").length, [3, 1, 2].sort().join("")],
};
