// Two servers for tests of http/request: one with TLS, one without. Prints both ports, then serves until stdin closes.
//   /echo      what the request was, as JSON
//   /away      a redirect to /echo of the other server
//   /home      a redirect to /echo of the same server
//   /pieces    three pieces, one after the other
import http from "node:http"; import https from "node:https"; import fs from "node:fs";
const file = (name) => fs.readFileSync(new URL(`tls/${name}`, import.meta.url));
const ports = {};
const serve = (own, other) => (request, response) => {
  const to = (scheme) => { response.writeHead(302, { location: `${scheme}://127.0.0.1:${ports[scheme]}/echo` }); response.end(); };
  if (request.url === "/away") return to(other);
  if (request.url === "/home") return to(own);
  if (request.url === "/pieces") { response.write("one"); setTimeout(() => response.write("two"), 20); return setTimeout(() => response.end("three"), 40); }
  const pieces = []; request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => response.end(JSON.stringify({ scheme: own, method: request.method, secret: request.headers["x-secret"] ?? null, body: Buffer.concat(pieces).toString() })));
};
const tls = https.createServer({ key: file("server.key"), cert: file("server.pem") }, serve("https", "http"));
const plain = http.createServer(serve("http", "https"));
tls.listen(0, "127.0.0.1", () => plain.listen(0, "127.0.0.1", () => {
  Object.assign(ports, { https: tls.address().port, http: plain.address().port });
  console.log(JSON.stringify(ports));
}));
process.stdin.resume().on("end", () => process.exit(0));
