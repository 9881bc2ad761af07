// A person decides. The call is held until a person answers; the other call does not wait for the answer.
//
//     cargo run --release -- run examples/approval.ts

interface Approval {
  approved: boolean;
  text: string;
}

const asked: Promise<Approval> = tools.demo.ask({ text: "May this program go on?" });
const sum: number = await tools.demo.add({ a: 1, b: 2 });
console.log(`meanwhile, 1 + 2 is ${sum}`);

try {
  const { approved, text }: Approval = await asked;
  return { approved, text, sum };
} catch (refusal) {
  // A refusal is an ordinary outcome: the program receives it as an exception and may continue.
  console.warn(`not approved: ${(refusal as Error).message}`);
  return { approved: false, sum };
}
