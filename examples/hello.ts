// A minimal program: types are stripped, a tool is called, a value is returned.
//
//     cargo run --release -- run examples/hello.ts

interface Greeting {
  text: string;
  sum: number;
}

const numbers: [number, number] = [40, 2];
const sum: number = await tools.demo.add({ a: numbers[0], b: numbers[1] });

console.log(`${numbers[0]} + ${numbers[1]} is ${sum}`);

const greeting: Greeting = { text: "Hello from inside the jail", sum };
return greeting;
