// A GraphQL server for tests: prints its port, stops when its stdin ends.
import { createRequire } from "node:module";
import http from "node:http";
const require = createRequire(process.argv[2] + "/");
const { buildSchema } = require("graphql");
const { createHandler } = require("graphql-http/lib/use/http");

const schema = buildSchema(`
  "How loud."
  enum Volume { QUIET LOUD }
  input Greeting { name: String!, volume: Volume = QUIET, times: [Int!] }
  type Person { id: ID!, name: String!, friend: Person, friends(first: Int!): [Person!]! }
  type Query {
    "Greets somebody."
    greet(greeting: Greeting!): String!
    person(id: ID!): Person
    people: [Person!]!
    broken: String
    who: String
  }
  type Mutation { rename(id: ID!, name: String!): Person }
`);
const people = { 1: { id: 1, name: "Ann" }, 2: { id: 2, name: "Bob" } };
const person = (id) => {
  const found = people[id];
  return found && { ...found, friend: () => person(id == 1 ? 2 : 1), friends: ({ first }) => [person(1), person(2)].slice(0, first) };
};
const rootValue = {
  greet: ({ greeting }) => `${greeting.volume}:${greeting.name}:${(greeting.times ?? []).join("+")}`,
  person: ({ id }) => person(id),
  people: () => [person(1), person(2)],
  broken: () => { throw new Error("out of order"); },
  who: (_, context) => context.authorization ?? null,
  rename: ({ id, name }) => { people[id].name = name; return person(id); },
};
const handler = createHandler({ schema, rootValue, context: (request) => ({ authorization: request.headers.authorization }) });
const server = http.createServer(handler).listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume().on("end", () => process.exit(0));
