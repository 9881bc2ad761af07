// Each case is a sentence that the Rust side names; it throws where the sentence is not true.
import assert from 'node:assert/strict';
import { answer, ask, call, config, eras, every, execute, link, post, startAsking, text, ways } from './link.mjs';
import { questions } from './questions.mjs';
import { structure } from './structure.mjs';

const cases = {
  ...questions,
  ...structure,

  // Model mode: the model is told, asks the person, and brings the answer.
  async model() {
    await every(async (how) => {
      const client = await link(how);
      assert.equal(client.getServerVersion().name, 'airlock');
      const tools = (await client.listTools()).tools.map((tool) => tool.name);
      assert.deepEqual(tools, ['execute', 'skills', 'resume'], JSON.stringify(how));
      const sum = await execute(client, 'console.log("hi"); return (await tools.demo.add({ a: 1, b: 2 })) + 1');
      const { executionId: began, ...rest } = sum.structuredContent;
      assert.match(began, /^run_/);
      assert.deepEqual(rest, { status: 'completed', result: 4, logs: ['[log] hi'] });
      assert.equal(sum.isError ?? false, false);
      assert.match(text(sum), /^4/);
      assert.match(text(await call(client, 'skills', { name: 'execute' })), /tools\.search/);
      assert.equal((await call(client, 'skills', { name: 'nope' })).isError, true);

      const paused = (await execute(client, ask)).structuredContent;
      assert.equal(paused.status, 'waiting_for_interaction');
      assert.equal(paused.interaction.address, 'tools.demo.ask');
      const undecided = await call(client, 'resume', { executionId: paused.executionId });
      assert.equal(undecided.structuredContent.recovery, 'correct_arguments');
      const accept = { executionId: paused.executionId, action: 'accept', content: '{}' };
      const done = await call(client, 'resume', accept);
      assert.equal(done.structuredContent.status, 'completed');
      const again = await call(client, 'resume', { ...accept, action: 'decline' });
      assert.deepEqual(again.structuredContent, done.structuredContent);

      const { executionId } = (await execute(client, ask)).structuredContent;
      const declined = await call(client, 'resume', { executionId, action: 'decline' });
      assert.equal(declined.isError, true);
      assert.match(text(declined), /declined/);

      const unknown = await call(client, 'resume', { executionId: 'exec_00000000-0000-4000-8000-000000000000', action: 'accept' });
      assert.equal(unknown.structuredContent.status, 'execution_not_found');
      assert.equal(unknown.structuredContent.recovery, 're_execute');
      const blank = await execute(client, '  ');
      assert.equal(blank.structuredContent.status, 'invalid_arguments');
      const thrown = await execute(client, 'throw new TypeError("boom")');
      assert.match(text(thrown), /^Error: TypeError: boom/);
      await client.close();
    });
  },

  // Browser mode: the model gets a link, and `resume` waits for the person.
  async browser() {
    await every(async (how) => {
      const client = await link({ ...how, query: { elicitation_mode: 'browser' } });
      const resume = (await client.listTools()).tools.find((tool) => tool.name === 'resume');
      assert.deepEqual(Object.keys(resume.inputSchema.properties), ['executionId']);
      const required = (await execute(client, ask)).structuredContent;
      assert.equal(required.status, 'user_approval_required');
      assert.equal(required.approvalUrl, `${config.url}/resume/${required.executionId}?mcp_session_id=none`);
      assert.equal(required.interaction, undefined);
      let tell;
      const moved = new Promise((done) => { tell = done; });
      const waiting = call(client, 'resume', { executionId: required.executionId, action: 'accept' }, { onprogress: tell });
      assert.equal(typeof (await moved).progress, 'number', 'while a person thinks, the client hears of it');
      const pause = new Promise((done) => setTimeout(done, 100, 'waits'));
      assert.equal(await Promise.race([waiting, pause]), 'waits', 'the model must not be able to answer');
      assert.equal((await answer(required.executionId, 'accept')).structured.status, 'completed');
      assert.equal((await waiting).structuredContent.status, 'completed');
      const again = await call(client, 'resume', { executionId: required.executionId });
      assert.equal(again.structuredContent.status, 'completed');
      await client.close();
      const hasty = await link({ ...how, query: { elicitation_mode: 'browser', wait: 20 } });
      const other = await startAsking(hasty);
      const still = await call(hasty, 'resume', { executionId: other });
      assert.equal(still.structuredContent.status, 'user_approval_required');
      await answer(other, 'cancel');
      await hasty.close();
    });
  },

  // Native mode: the client shows forms and links itself.
  async native() {
    await every(async (how) => {
      const asked = [];
      const replies = [];
      const elicit = (params) => {
        asked.push(params);
        return replies.shift();
      };
      const query = { elicitation_mode: 'native' };
      const client = await link({ ...how, query, elicit, modes: { form: {}, url: {} } });
      const tools = (await client.listTools()).tools.map((tool) => tool.name);
      assert.deepEqual(tools, ['execute', 'skills', 'wait']);

      replies.push({ action: 'accept', content: {} });
      const done = await execute(client, ask);
      assert.equal(done.structuredContent.status, 'completed', JSON.stringify([how, done]));
      assert.match(asked[0].message, /demo\.ask/);
      assert.deepEqual(asked[0].requestedSchema, { type: 'object', properties: {} });

      const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
      const form = `return await tools.demo.form({ message: "Who?", schema: ${JSON.stringify(schema)} })`;
      replies.push({ action: 'accept', content: { name: 'Ann' } });
      const filled = await execute(client, form);
      assert.deepEqual(filled.structuredContent.result, { name: 'Ann' }, JSON.stringify(filled));

      replies.push({ action: 'accept' });
      await execute(client, 'return await tools.demo.link({ message: "Go", url: "https://example.com/x" })');
      assert.equal(asked[2].mode, 'url');
      assert.equal(asked[2].url, 'https://example.com/x');

      replies.push({ action: 'decline' });
      assert.match(text(await execute(client, ask)), /declined/);

      replies.push({ action: 'accept' }, { action: 'accept' });
      const two = await execute(client, `const one = () => tools.demo.ask({ text: "x" }); return (await Promise.all([one(), one()])).length`);
      assert.equal(two.structuredContent.result, 2, JSON.stringify(two));
      await client.close();

      const plain = await link({ ...how, query, elicit, modes: { form: {} } });
      replies.push({ action: 'accept', content: {} });
      await execute(plain, 'return await tools.demo.link({ message: "Go", url: "https://example.com/y" })');
      assert.equal(asked.at(-1).mode ?? 'form', 'form');
      assert.match(asked.at(-1).message, /https:\/\/example\.com\/y/);
      await plain.close();
    });
  },

  // A client without elicitation in native mode is served as in model mode.
  async lacking() {
    await every(async (how) => {
      const client = await link({ ...how, query: { elicitation_mode: 'native' } });
      const tools = (await client.listTools()).tools.map((tool) => tool.name);
      assert.deepEqual(tools, ['execute', 'skills', 'resume']);
      const paused = (await execute(client, ask)).structuredContent;
      assert.equal(paused.status, 'waiting_for_interaction');
      const accept = { executionId: paused.executionId, action: 'accept' };
      assert.equal((await call(client, 'resume', accept)).structuredContent.status, 'completed');
      await client.close();
    });
  },

  // requestState: sealed, one caller's, one call's, once.
  async sealed() {
    const query = '?elicitation_mode=native';
    const capabilities = { elicitation: { form: {} } };
    const params = { name: 'execute', arguments: { code: ask } };
    const options = { query, capabilities };
    const first = await post('tools/call', params, options);
    assert.equal(first.result.resultType, 'input_required', JSON.stringify(first));
    const { requestState, inputRequests } = first.result;
    const [id] = Object.keys(inputRequests);
    const inputResponses = { [id]: { action: 'accept', content: {} } };
    const retry = (change, more) => post('tools/call', { ...params, requestState, inputResponses, ...change }, { ...options, ...more });
    const refused = async (what, asked) => assert.equal((await asked).error?.code, -32602, what);
    const middle = requestState.length >> 1;
    const flipped = requestState[middle] === 'A' ? 'B' : 'A';
    const tampered = requestState.slice(0, middle) + flipped + requestState.slice(middle + 1);
    await refused('tampered', retry({ requestState: tampered }));
    await refused('invented', retry({ requestState: 'x' }));
    await refused('another call', retry({ arguments: { code: 'return 1' } }));
    await refused('another caller', retry({}, { token: config.admin }));
    await refused('no state', retry({ requestState: undefined }));
    const missing = await retry({ inputResponses: {} });
    assert.equal(missing.result.resultType, 'input_required');
    const wrong = await retry({ inputResponses: { other: { action: 'accept' } } });
    assert.equal(wrong.result.resultType, 'input_required');
    const done = await retry({});
    assert.equal(done.result.structuredContent?.status, 'completed', JSON.stringify(done));
    await refused('used', retry({}));
  },

  // What pauses here is answered elsewhere, and the reverse.
  async doors() {
    const client = await link({ era: '2025-11-25', way: 'http' });
    const here = (await execute(client, ask)).structuredContent.executionId;
    assert.equal((await answer(here, 'accept')).structured.status, 'completed');
    const seen = await call(client, 'resume', { executionId: here, action: 'accept' });
    assert.equal(seen.structuredContent.status, 'completed');
    const response = await fetch(`${config.url}/api/executions`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${config.token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ code: ask }),
    });
    const there = (await response.json()).structured.executionId;
    const done = await call(client, 'resume', { executionId: there, action: 'accept' });
    assert.equal(done.structuredContent.status, 'completed');
    await client.close();
  },

  // A call that takes long is answered with a handle; progress is told; tasks where the client has them.
  async long() {
    await every(async (how) => {
      const client = await link({ ...how, query: { wait: 300 } });
      const heard = [];
      const onprogress = (progress) => heard.push(progress);
      const going = await execute(client, 'await tools.demo.sleep({ ms: 900 }); return "late"', { onprogress });
      assert.equal(going.structuredContent.status, 'running', JSON.stringify([how, going]));
      assert.match(going.structuredContent.executionId, /^run_/);
      assert.ok(heard.length > 0 && heard.every((one, at) => one.progress === at + 1), JSON.stringify([how, heard]));
      let told = going;
      while (told.structuredContent.status === 'running') {
        told = await call(client, 'resume', { executionId: going.structuredContent.executionId });
      }
      assert.equal(told.structuredContent.result, 'late');
      const again = await call(client, 'resume', { executionId: going.structuredContent.executionId });
      assert.deepEqual(again.structuredContent, told.structuredContent);
      await client.close();
    });
  },

  async tasks() {
    const extensions = { 'io.modelcontextprotocol/tasks': {} };
    const capabilities = { extensions, elicitation: { form: {} } };
    const options = { query: '?elicitation_mode=native&wait=50', capabilities };
    const run = (code) => post('tools/call', { name: 'execute', arguments: { code } }, options);
    const get = (taskId, more) => post('tasks/get', { taskId }, { ...options, ...more });
    const until = async (taskId, status) => {
      for (;;) {
        const { result } = await get(taskId);
        if (result.status === status) return result;
        assert.equal(result.status, 'working', JSON.stringify(result));
        await new Promise((done) => setTimeout(done, 20));
      }
    };
    const patient = { ...options, query: '?elicitation_mode=native' };
    const soon = await post('tools/call', { name: 'execute', arguments: { code: 'return 1' } }, patient);
    assert.equal(soon.result.resultType, 'complete');
    const task = (await run('await tools.demo.sleep({ ms: 300 }); return 7')).result;
    assert.equal(task.resultType, 'task', JSON.stringify(task));
    assert.equal(task.status, 'working');
    const done = await until(task.taskId, 'completed');
    assert.equal(done.result.structuredContent.result, 7);
    const asking = (await run(`await tools.demo.sleep({ ms: 300 }); ${ask}`)).result;
    const needed = await until(asking.taskId, 'input_required');
    const [id] = Object.keys(needed.inputRequests);
    const inputResponses = { [id]: { action: 'accept', content: {} }, unasked: {} };
    assert.deepEqual((await post('tasks/update', { taskId: asking.taskId, inputResponses }, options)).error, undefined);
    assert.equal((await until(asking.taskId, 'completed')).result.isError ?? false, false);
    const endless = (await run('await tools.demo.sleep({ ms: 60000 })')).result;
    await post('tasks/cancel', { taskId: endless.taskId }, options);
    await until(endless.taskId, 'cancelled');
    assert.equal((await get('run_00000000-0000-4000-8000-000000000000')).error.code, -32602);
    assert.equal((await get(task.taskId, { capabilities: {} })).error.code, -32021);
  },

  // A client that dies in mid-call loses nothing: the next one finds the result.
  async dies() {
    await every(async (how) => {
      const first = await link(how);
      const marker = `m${Math.random()}`;
      const lost = execute(first, `await tools.demo.sleep({ ms: 700 }); return "${marker}"`).catch(() => 'lost');
      await newest({ era: '2026-07-28', way: 'http' }, ({ description }) => description === 'running');
      // A client that closes in order hears the end; this one does not.
      if (how.way === 'stdio') process.kill(first.transportInUse.pid, 'SIGKILL');
      else await first.close();
      assert.equal(await lost, 'lost');
      const second = await link(how);
      const { resources } = await second.listResources();
      const executionId = resources[0].name;
      const told = await call(second, 'resume', { executionId });
      assert.equal(told.structuredContent.result, marker, JSON.stringify([how, told]));
      const read = await second.readResource({ uri: resources[0].uri });
      assert.equal(JSON.parse(read.contents[0].text).result, marker);
      await second.close();
    });
  },

  async ten() {
    const one = async (n) => {
      const how = { era: eras[n % eras.length], way: ways[n % ways.length] };
      const elicit = () => ({ action: 'accept', content: {} });
      const client = await link({ ...how, query: { elicitation_mode: 'native' }, elicit });
      for (let round = 0; round < 3; round += 1) {
        const told = await execute(client, `await tools.demo.ask({ text: "${n}" }); return ${n}`);
        assert.equal(told.structuredContent.result, n, JSON.stringify(told));
      }
      await client.close();
    };
    await Promise.all(Array.from({ length: 10 }, (_, n) => one(n)));
  },

  // Between pause and resume somebody restarts the server; one bridge lives through it.
  async restart() {
    const elicit = async () => ({ action: 'accept', content: {} });
    const model = await link({ era: '2025-11-25', way: 'stdio' });
    const native = await link({ era: '2025-11-25', way: 'stdio', query: { elicitation_mode: 'native' }, elicit });
    const executionId = (await execute(model, ask)).structuredContent.executionId;
    const options = { query: '?elicitation_mode=native', capabilities: { elicitation: {} } };
    const params = { name: 'execute', arguments: { code: ask } };
    const { requestState, inputRequests } = (await post('tools/call', params, options)).result;
    console.log('PAUSED');
    const line = await new Promise((heard) => process.stdin.once('data', heard));
    config.url = String(line).trim();
    const done = await call(model, 'resume', { executionId, action: 'accept' });
    assert.equal(done.structuredContent.status, 'completed', JSON.stringify(done));
    assert.equal((await execute(native, ask)).structuredContent.status, 'completed');
    const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((id) => [id, { action: 'accept' }]));
    const retry = () => post('tools/call', { ...params, requestState, inputResponses }, options);
    assert.equal((await retry()).result?.structuredContent.status, 'completed');
    await model.close();
    await native.close();
    process.stdin.destroy();
  },

  // Emitted items are content, large results are resources.
  async content() {
    await every(async (how) => {
      const client = await link(how);
      const shown = await execute(client, `emit("hi"); emit({ type: "image", data: "aGk=", mimeType: "image/png" });
        emit({ _tag: "ToolFile", name: "r.pdf", mimeType: "application/pdf", encoding: "base64", data: "aGk=", byteLength: 2 });
        console.log("note"); return { a: 1 }`);
      assert.deepEqual(shown.content.map((block) => block.type), ['text', 'image', 'text', 'resource', 'text']);
      assert.equal(shown.content[2].text, 'File output: r.pdf (application/pdf, 2 bytes)');
      assert.equal(shown.content[4].text, 'Logs:\n[log] note');
      const { executionId } = shown.structuredContent;
      assert.deepEqual(shown.structuredContent, { status: 'completed', executionId, result: { a: 1 }, emitted: 3, logs: ['[log] note'] });

      const odd = [
        { type: 'image', data: '!!notb64', mimeType: 'image/png' },
        { type: 'audio', data: 'data:audio/wav;base64,aGk=', mimeType: 'audio/wav' },
        { type: 'resource', resource: { uri: 'a:b', blob: '?' } },
        { type: 'text', text: 'x', annotations: { priority: 7 } },
        { type: 'text', text: 'x', annotations: { lastModified: 'yesterday' } },
        { type: 'text', text: 'x', annotations: { audience: ['robot'] } },
      ];
      const kept = await execute(client, `${JSON.stringify(odd)}.forEach((item) => emit(item)); return 42`);
      assert.equal(kept.structuredContent.result, 42);
      assert.deepEqual(kept.content.map(({ text }) => JSON.parse(text)), odd);

      const large = await execute(client, 'emit("x".repeat(3000000)); return "y".repeat(1500000)');
      assert.equal(large.structuredContent.result, null);
      const { bytes, resource } = large.structuredContent.truncated.result;
      assert.equal(bytes, 1500002);
      assert.ok(JSON.stringify(large).length < 200_000);
      const links = large.content.filter((block) => block.type === 'resource_link').map((block) => block.uri);
      assert.deepEqual(links, [resource.replace('/result', '/emitted/1'), resource]);
      let whole = '';
      for (let uri = resource; uri; ) {
        const { contents } = await client.readResource({ uri });
        whole += contents[0].text;
        uri = contents[1]?.uri;
      }
      assert.equal(JSON.parse(whole), 'y'.repeat(1500000));
      const templates = (await client.listResourceTemplates()).resourceTemplates;
      assert.equal(templates.length, 4);
      await assert.rejects(client.readResource({ uri: 'airlock://executions/run_00000000-0000-4000-8000-000000000000' }));
      await client.close();
    });
  },

  // Tools beside `execute`, for those who ask for them.
  async direct() {
    await every(async (how) => {
      const client = await link({ ...how, query: { tools: 'direct' } });
      const names = (await client.listTools()).tools.map((tool) => tool.name);
      assert.ok(names.includes('demo_add') && names.includes('execute'), String(names));
      const own = names.filter((name) => name === 'search' || name.startsWith('executor_'));
      assert.deepEqual(own, [], 'what finds and manages tools leaves the places to the tools of sources');
      const sum = await call(client, 'demo_add', { a: 1, b: 2 });
      assert.equal(sum.structuredContent.result, 3);
      const unfit = await call(client, 'demo_add', { a: 'x' });
      assert.equal(unfit.isError, true);
      const paused = await call(client, 'demo_ask', { text: 'go?' });
      assert.equal(paused.structuredContent.status, 'waiting_for_interaction');
      await client.close();
    });
  },

  // Without a server, `airlock mcp` starts one; many at once start one together.
  async started() {
    const all = Array.from({ length: 5 }, (_, n) => link({ era: eras[n % eras.length], way: 'stdio' }));
    const clients = await Promise.all(all);
    for (const client of clients) {
      assert.equal((await execute(client, 'return 2')).structuredContent.result, 2);
      await client.close();
    }
  },
};

/// Waits until the newest execution is as wished.
async function newest(how, wished) {
  const client = await link(how);
  for (;;) {
    const { resources } = await client.listResources();
    if (resources.length > 0 && wished(resources[0])) break;
    await new Promise((done) => setTimeout(done, 10));
  }
  await client.close();
}

await cases[process.argv[2]]();
process.exit(0);
