// What a client that shows its model nothing but `structuredContent` gets to see, and what clients see of tools, prompts
// and sessions.
import assert from 'node:assert/strict';
import { ask, call, config, every, execute, link, post, text } from './link.mjs';

const run = /^run_[0-9a-f-]{36}$/;

export const structure = {
  // The structure says what the text says: of errors, of large results, of what has begun.
  async structure() {
    await every(async (how) => {
      const client = await link(how);
      const value = await execute(client, 'return 1');
      assert.match(value.structuredContent.executionId, run);
      const again = await call(client, 'resume', { executionId: value.structuredContent.executionId });
      assert.deepEqual(again.structuredContent, value.structuredContent);

      const thrown = (await execute(client, 'throw new TypeError("boom")')).structuredContent;
      assert.match(thrown.executionId, run);
      assert.match(thrown.error, /TypeError: boom/);

      for (const code of [' ', 7]) {
        const refused = await call(client, 'execute', { code });
        assert.equal(text(refused), `Error: ${refused.structuredContent.message}`, JSON.stringify(refused));
        assert.match(refused.structuredContent.message, /"code".*Correct the arguments and call again\.$/);
      }

      const large = (await execute(client, 'return { rows: "ä".repeat(90_000) }')).structuredContent;
      const { preview, bytes, resource } = large.truncated.result;
      assert.equal(preview, `{"rows":"${'ä'.repeat(3_991)}`);
      assert.deepEqual([bytes, large.result], [180_011, null]);
      assert.equal(resource, `airlock://executions/${large.executionId}/result`);
      assert.match(large.message, /do not run it again/);

      const paused = (await execute(client, ask)).structuredContent;
      assert.match(paused.resumePrompt, /tool `resume`/);
      await client.close();
      const hasty = await link({ ...how, query: { wait: 20 } });
      const going = (await execute(hasty, 'await tools.demo.sleep({ ms: 3_000 })')).structuredContent;
      assert.match(going.executionId, run);
      assert.match(going.resumePrompt, /do not run it again/);
      await hasty.close();
    });
  },

  // Annotations are true, and each skill is a prompt.
  async offers() {
    await every(async (how) => {
      const client = await link(how);
      const { tools } = await client.listTools();
      const hints = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations]));
      const acts = { readOnlyHint: false, destructiveHint: true, openWorldHint: true };
      assert.deepEqual(hints.execute, { ...acts, idempotentHint: false });
      assert.deepEqual(hints.resume, { ...acts, idempotentHint: true });
      assert.deepEqual(hints.skills, { readOnlyHint: true, openWorldHint: false });
      const { prompts } = await client.listPrompts();
      assert.deepEqual(prompts.map(({ name }) => name), ['execute']);
      for (const { name } of prompts) {
        const { messages } = await client.getPrompt({ name });
        assert.equal(messages[0].content.text, text(await call(client, 'skills', { name })));
      }
      await assert.rejects(client.getPrompt({ name: 'nope' }), /prompts\/list/);
      await client.close();
      const waiting = await link({ ...how, query: { elicitation_mode: 'browser' } });
      const resume = (await waiting.listTools()).tools.find(({ name }) => name === 'resume');
      assert.deepEqual(resume.annotations, { readOnlyHint: true, openWorldHint: false });
      await waiting.close();
    });
  },

  // A call that is over before there is anything to report is answered in one piece, token or not.
  async unreported() {
    const told = async (code) => {
      const params = { name: 'execute', arguments: { code }, _meta: { progressToken: 'p' } };
      return (await post('tools/call', params)).messages.map(({ method }) => method);
    };
    const answers = [];
    for (let n = 0; n < 30; n += 1) answers.push(await told('return 1'));
    assert.ok(answers.some((methods) => methods.length === 1), JSON.stringify(answers));
    const slow = await told('await tools.demo.sleep({ ms: 1_500 })');
    assert.equal(slow[0], 'notifications/progress');
  },

  // A native session of 2025 over HTTP: its call ends when the server restarts, it lives on, and it can be deleted.
  async cutoff() {
    const open = async (elicit) => {
      const client = await link({ era: '2025-11-25', way: 'http', query: { elicitation_mode: 'native' }, elicit });
      return client;
    };
    let showing;
    const shown = new Promise((done) => { showing = done; });
    let asked = 0;
    const client = await open(() => {
      asked += 1;
      if (asked > 1) return { action: 'accept', content: {} };
      showing();
      return new Promise(() => {});
    });
    const session = client.transportInUse.sessionId;
    const cut = execute(client, ask);
    await shown;
    console.log('SHOWN');
    await new Promise((heard) => process.stdin.once('data', heard));
    const lost = await cut;
    assert.equal(lost.isError, true);
    const { status, recovery, message } = lost.structuredContent;
    assert.deepEqual([status, recovery], ['connection_lost', 'read_resources']);
    assert.match(message, /Do not run the program again/);
    const after = await execute(client, ask);
    assert.equal(after.structuredContent.status, 'completed', JSON.stringify(after));
    assert.equal(client.transportInUse.sessionId, session, 'the session is the same');

    const speak = (method, token = config.token) => fetch(`${config.url}/mcp?elicitation_mode=native`, {
      method,
      headers: {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'Mcp-Session-Id': session,
        'MCP-Protocol-Version': '2025-11-25',
      },
      body: method === 'POST' ? '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' : undefined,
    });
    assert.equal((await speak('DELETE', config.admin)).status, 404, "another's session");
    assert.equal((await speak('DELETE')).status, 204);
    assert.equal((await speak('POST')).status, 404, 'it is gone for good');
    const second = await open(() => ({ action: 'accept', content: {} }));
    await second.transportInUse.terminateSession();
    process.stdin.destroy();
  },
};
