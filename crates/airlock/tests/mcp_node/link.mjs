// Connections to Airlock by the official clients: v1 of the SDK speaks the revisions of 2025, v2 that of 2026.
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ProgressNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';

export const config = JSON.parse(process.argv[3]);

export const eras = ['2025-06-18', '2025-11-25', '2026-07-28'];
export const ways = ['http', 'stdio'];

/// A program that asks, and helpers to tell cases with.
export const ask = 'return await tools.demo.ask({ text: "go?" })';
export const text = (result) => result.content[0].text;
export const every = async (test) => {
  for (const era of eras) for (const way of ways) await test({ era, way });
};

const info = { name: 'airlock-tests', version: '1' };

/// A connected client. `elicit` answers what the server asks; its absence is a client without elicitation.
export async function link({ era, way, query = {}, elicit, modes, token = config.token, stdio = [] }) {
  const capabilities = elicit ? { elicitation: modes ?? {} } : {};
  const isNew = era === '2026-07-28';
  const options = { capabilities, supportedProtocolVersions: [era] };
  if (isNew) options.versionNegotiation = { mode: { pin: era } };
  const client = isNew ? new ClientV2(info, options) : new ClientV1(info, { capabilities });
  if (elicit) {
    const answer = async (request) => elicit(request.params);
    client.setRequestHandler(isNew ? 'elicitation/create' : ElicitRequestSchema, answer);
  }
  client.asked = [];
  const transport = way === 'http' ? http(isNew, query, token) : pipe(isNew, query, stdio);
  if (!isNew) {
    // The SDK always offers its newest revision; an older client is one that offers an older one.
    const send = transport.send.bind(transport);
    transport.send = (message, more) => {
      if (message.method === 'initialize') message.params.protocolVersion = era;
      return send(message, more);
    };
  }
  await client.connect(transport);
  client.transportInUse = transport;
  return client;
}

function http(isNew, query, token) {
  const url = new URL(`${config.url}/mcp`);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  const options = { requestInit: { headers: { Authorization: `Bearer ${token}` } } };
  return isNew ? new HttpV2(url, options) : new HttpV1(url, options);
}

function pipe(isNew, query, more) {
  const args = ['mcp', '--data-dir', config.dataDir, ...more];
  if (query.elicitation_mode) args.push('--elicitation-mode', query.elicitation_mode);
  if (query.wait) args.push('--wait', String(query.wait));
  if (query.tools === 'direct') args.push('--direct-tools');
  const Stdio = isNew ? StdioV2 : StdioV1;
  const env = { PATH: process.env.PATH, HOME: config.dataDir };
  return new Stdio({ command: config.airlock, args, env, stderr: 'inherit' });
}

export const execute = (client, code, more) => call(client, 'execute', { code }, more);

export async function call(client, name, args, more = {}) {
  const request = { name, arguments: args };
  return client instanceof ClientV2
    ? client.callTool(request, more)
    : client.callTool(request, undefined, more);
}

/// One message to /mcp as the revision of 2026 has it, without a client in between.
export async function post(method, params, { query = '', token = config.token, capabilities = {}, headers = {} } = {}) {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': capabilities,
    'io.modelcontextprotocol/clientInfo': info,
    ...params?._meta,
  };
  const name = params?.name ?? params?.uri ?? params?.taskId;
  const response = await fetch(`${config.url}/mcp${query}`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': method,
      ...(name === undefined ? {} : { 'Mcp-Name': name }),
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
  });
  const text = await response.text();
  const data = text.split('\n').filter((line) => line.startsWith('data: ')).map((line) => line.slice(6));
  const messages = (data.length > 0 ? data : [text]).filter(Boolean).map((line) => JSON.parse(line));
  return { status: response.status, messages, ...messages.at(-1) };
}

/// Answers a question at Executor's HTTP door.
export async function answer(id, action, more = {}) {
  const response = await fetch(`${config.url}/api/executions/${id}/resume`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${config.admin}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ action, ...more }),
  });
  return response.json();
}

/// Starts a program that asks; the id of its question.
export async function startAsking(client, tool = 'resume') {
  let told = await execute(client, ask);
  while (told.structuredContent.status === 'running') {
    told = await call(client, tool, { executionId: told.structuredContent.executionId });
  }
  return told.structuredContent.executionId;
}
