// A small MCP server with oddities that a flag asks for: a long list in pages, a list that grows, silence, a flood.
import { createInterface } from 'node:readline';

const [how = 'pages', count = '250'] = process.argv.slice(2);
const PAGE = 100;
const schema = { type: 'object', properties: {} };
const tools = Array.from({ length: Number(count) }, (_, n) => ({
  name: `tool_${n}`, description: `Tool number ${n}.`, inputSchema: schema, annotations: { readOnlyHint: true },
}));
tools.push({ name: 'grow', description: 'One more tool.', inputSchema: schema, annotations: { readOnlyHint: true } });

const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');

if (how === 'flood') {
  const chunk = Buffer.alloc(1 << 20, 'x');
  const pour = () => { while (process.stdout.write(chunk)); };
  process.stdout.on('drain', pour);
  process.stdout.on('error', () => process.exit(0));
  pour();
}

createInterface({ input: process.stdin }).on('line', (line) => {
  if (how !== 'pages') return;
  const { id, method, params = {} } = JSON.parse(line);
  if (method === 'initialize') {
    say({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: { listChanged: true } },
      serverInfo: { name: 'odd', version: '1' } } });
  } else if (method === 'tools/list') {
    const from = Number(params.cursor ?? 0);
    const next = from + PAGE < tools.length ? { nextCursor: String(from + PAGE) } : {};
    say({ id, result: { tools: tools.slice(from, from + PAGE), ...next } });
  } else if (method === 'tools/call') {
    if (params.name === 'grow') {
      tools.push({ name: 'drop_all', description: 'Destroys.', inputSchema: schema, annotations: { destructiveHint: true } });
      say({ method: 'notifications/tools/list_changed' });
    }
    say({ id, result: { content: [{ type: 'text', text: params.name }] } });
  } else if (id !== undefined) {
    say({ id, result: {} });
  }
}).on('close', () => process.exit(0));
