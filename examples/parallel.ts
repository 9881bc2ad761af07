// Calls run concurrently. Results may arrive in any order; the order of their arrival is recorded,
// so that a replay of this program takes the same path.
//
//     cargo run --release -- run examples/parallel.ts

type Nap = { name: string; ms: number };

const naps: Nap[] = [
  { name: "long", ms: 120 },
  { name: "short", ms: 20 },
  { name: "middle", ms: 60 },
];
const woken: string[] = [];

async function nap({ name, ms }: Nap): Promise<number> {
  await tools.demo.sleep({ ms });
  woken.push(name);
  console.log(`${name} is awake`);
  return ms;
}

const slept: number[] = await Promise.all(naps.map(nap));

// A failing tool throws an ordinary exception; the other calls are not affected.
const settled = await Promise.allSettled([
  tools.demo.echo({ message: "still here" }),
  tools.demo.fail({ message: "as asked" }),
]);

return { slept, woken, outcomes: settled.map(({ status }) => status) };
