// Codex itself, without a terminal, with a model in this process that calls what it is told to. Its configuration is what
// `airlock mcp install codex` wrote; only the model is named here.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import http from 'node:http';

const { codex, home } = JSON.parse(process.argv[2]);
const calls = [
  ['execute', { code: 'return 6 * 7' }],
  ['execute', { code: 'throw new TypeError("boom")' }],
  ['execute', { code: 'return "x".repeat(100_000)' }],
  ['resume', { executionId: 'run_00000000-0000-4000-8000-000000000000' }],
];
const outputs = [];
let step = 0;

function events(body) {
  outputs.splice(0, outputs.length, ...(body.input ?? []).filter(({ type }) => type === 'function_call_output').map(({ output }) => output));
  const [name, args] = calls[step] ?? [];
  step += 1;
  const item = name
    ? { type: 'function_call', call_id: `call_${step}`, namespace: 'mcp__airlock', name, arguments: JSON.stringify(args) }
    : { type: 'message', role: 'assistant', id: `msg_${step}`, content: [{ type: 'output_text', text: 'done' }] };
  const usage = { input_tokens: 1, input_tokens_details: null, output_tokens: 1, output_tokens_details: null, total_tokens: 2 };
  const response = { id: `resp_${step}` };
  return [
    { type: 'response.created', response },
    { type: 'response.output_item.done', item },
    { type: 'response.completed', response: { ...response, usage } },
  ];
}

const model = http.createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  if (!request.url.includes('/responses')) {
    response.writeHead(200, { 'content-type': 'application/json' });
    return response.end('{"models":[],"data":[]}');
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of events(JSON.parse(body))) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  return response.end();
});
await new Promise((ready) => model.listen(0, '127.0.0.1', ready));

const provider = {
  name: 'mock',
  base_url: `http://127.0.0.1:${model.address().port}/v1`,
  wire_api: 'responses',
  request_max_retries: 0,
  stream_max_retries: 0,
  supports_websockets: false,
};
const settings = Object.entries(provider).flatMap(([name, value]) => ['-c', `model_providers.mock.${name}=${JSON.stringify(value)}`]);
const words = [codex, 'exec', '--skip-git-repo-check', '-c', 'model="m"', '-c', 'model_provider="mock"', ...settings, 'go'];
const env = { PATH: process.env.PATH, HOME: home };
const child = spawn(process.execPath, words, { cwd: home, env, stdio: ['ignore', 'ignore', 'inherit'] });
const code = await new Promise((done) => child.on('exit', done));
model.close();
assert.equal(code, 0);

const told = outputs.map((output) => JSON.parse(/\{.*\}/s.exec(typeof output === 'string' ? output : JSON.stringify(output))[0]));
assert.equal(told.length, calls.length, JSON.stringify(outputs));
const [value, thrown, large, unknown] = told;
assert.equal(value.result, 42);
assert.match(value.executionId, /^run_/);
assert.match(thrown.error, /TypeError: boom/);
assert.match(large.truncated.result.preview, /^"xxx/);
assert.equal(unknown.status, 'execution_not_found');
assert.match(unknown.message, /There is no execution/);
