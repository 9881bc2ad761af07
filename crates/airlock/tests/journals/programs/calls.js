// Calls side by side, a race, a failure that is caught, and calls that nobody awaits.
const [a, b] = await Promise.all([tools.demo.add({ a: 1, b: 2 }), tools.demo.echo({ message: "side by side" })]);
const first = await Promise.race([tools.demo.sleep({ ms: 1 }), new Promise((done) => setTimeout(() => done("timer"), 60_000))]);
let failed;
try {
  await tools.demo.fail({ message: "on purpose" });
} catch (error) {
  failed = [error.name, error.message, error.code];
}
tools.demo.echo({ message: "not awaited" }).then((value) => console.log("later", value));
const settled = await parallel([() => tools.demo.add({ a: 3, b: 4 }), () => tools.demo.add({ a: 5, b: 6 })]);
console.log(Date.now() >= performance.timeOrigin, Math.random());
return { a, b, first, failed, settled };
