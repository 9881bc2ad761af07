// A small MCP server with one tool, which says how far it is and never ends.
import { createInterface } from 'node:readline';

const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
const crawl = {
  name: 'crawl', description: 'Reads one page and says so.', annotations: { readOnlyHint: true },
  inputSchema: { type: 'object', properties: { site: { type: 'string' } }, required: ['site'] },
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params = {} } = JSON.parse(line);
  if (method === 'initialize') {
    say({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'slow', version: '1' } } });
  } else if (method === 'tools/list') {
    say({ id, result: { tools: [crawl] } });
  } else if (method === 'tools/call') {
    const { progressToken } = params._meta;
    say({ method: 'notifications/progress', params: { progressToken, progress: 1, total: 3, message: `read ${params.arguments.site}` } });
  } else if (id !== undefined) {
    say({ id, result: {} });
  }
}).on('close', () => process.exit(0));
