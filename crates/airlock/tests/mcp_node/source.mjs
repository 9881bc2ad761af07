// An ordinary MCP server with the tools that the conformance suites call, as a source of Airlock.
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ElicitResultSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const wav = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';
const said = (text) => ({ type: 'text', text });
const resource = (uri, mimeType, text) => ({ type: 'resource', resource: { uri, mimeType, text } });
const image = { type: 'image', data: png, mimeType: 'image/png' };

const three = ['option1', 'option2', 'option3'];
const titled = (what) => ['First', 'Second', 'Third'].map((word, n) => ({ const: `value${n + 1}`, title: `${word} ${what}` }));
const forms = {
  test_elicitation: {
    properties: { username: { type: 'string', description: "User's response" }, email: { type: 'string', description: "User's email address" } },
    required: ['username', 'email'],
  },
  test_elicitation_sep1034_defaults: {
    properties: {
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    },
  },
  test_elicitation_sep1330_enums: {
    properties: {
      untitledSingle: { type: 'string', enum: three },
      titledSingle: { type: 'string', oneOf: titled('Option') },
      legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
      untitledMulti: { type: 'array', items: { type: 'string', enum: three } },
      titledMulti: { type: 'array', items: { anyOf: titled('Choice') } },
    },
  },
};

const answers = {
  test_simple_text: () => [said('This is a simple text response for testing.')],
  test_image_content: () => [image],
  test_audio_content: () => [{ type: 'audio', data: wav, mimeType: 'audio/wav' }],
  test_embedded_resource: () => [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  test_multiple_content_types: () => [
    said('Multiple content types test:'),
    image,
    resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
  ],
  test_error_handling: () => {
    throw new Error('This tool intentionally returns an error for testing');
  },
};
for (const [name, form] of Object.entries(forms)) {
  answers[name] = async (args, { sendRequest }) => {
    const params = { message: args.message ?? 'Please fill in', requestedSchema: { type: 'object', ...form } };
    const { action, content } = await sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema);
    return [said(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`)];
  };
}

const server = new Server({ name: 'suite', version: '1' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: Object.keys(answers).map((name) => ({
    name,
    description: name,
    inputSchema: { type: 'object', properties: { message: { type: 'string' } } },
    annotations: { readOnlyHint: true },
  })),
}));
server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
  try {
    return { content: await answers[params.name](params.arguments ?? {}, extra) };
  } catch (error) {
    return { content: [said(error.message)], isError: true };
  }
});
await server.connect(new StdioServerTransport());
