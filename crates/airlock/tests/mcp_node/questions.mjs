// Questions that do not go as wished: answers that do not fit, forms that are not shown, several at once.
import assert from 'node:assert/strict';
import { answer, ask, call, config, eras, every, execute, link, post, startAsking, text, ways } from './link.mjs';

const number = { type: 'object', properties: { a: { type: 'integer', minimum: 1 } }, required: ['a'] };
const filled = (message) => `tools.demo.form({ message: ${message}, schema: ${JSON.stringify(number)} })`;
const form = (message) => `return await ${filled(JSON.stringify(message))}`;

export const questions = {
  // What does not fit is asked for again, with the reason, and the program does nothing twice.
  async misfit() {
    const [wrong, right] = [-1, 4].map((a) => ({ action: 'accept', content: { a } }));
    await every(async (how) => {
      const asked = [];
      const replies = [wrong, right];
      const elicit = (params) => {
        asked.push(params.message);
        return replies.shift() ?? wrong;
      };
      const client = await link({ ...how, query: { elicitation_mode: 'native' }, elicit });
      const told = await execute(client, form('How many?'));
      assert.deepEqual(told.structuredContent.result, { a: 4 }, JSON.stringify([how, told]));
      assert.equal(asked.length, 2);
      assert.equal(asked[0], 'How many?');
      assert.match(asked[1], /^The answer does not fit the question: .*\n\nHow many\?$/);
      if (how.era !== '2026-07-28') {
        const paused = await execute(client, form('How many?'));
        assert.equal(asked.length, 5, 'a client that answers without a person is asked three times');
        assert.equal(paused.isError ?? false, false);
        assert.match(text(paused), /^The answer does not fit .*User approval required.*`wait`/s);
        const { status, executionId } = paused.structuredContent;
        assert.equal(status, 'user_approval_required');
        await answer(executionId, 'accept', { content: { a: 5 } });
        assert.deepEqual((await call(client, 'wait', { executionId })).structuredContent.result, { a: 5 });
      }
      await client.close();
    });
    const options = { query: '?elicitation_mode=native', capabilities: { elicitation: { form: {} } } };
    const params = { name: 'execute', arguments: { code: `return Promise.all(["x", "y"].map((m) => ${filled('m')}))` } };
    const retry = async ({ requestState }, inputResponses) =>
      post('tools/call', { ...params, requestState, inputResponses }, options);
    let { result: needed } = await post('tools/call', params, options);
    const ids = ({ inputRequests }) => Object.keys(inputRequests);
    while (ids(needed).length < 2) needed = (await retry(needed, {})).result;
    const [first, second] = ids(needed);
    const { result: again } = await retry(needed, { [first]: right, [second]: wrong });
    assert.equal(again.resultType, 'input_required', JSON.stringify(again));
    assert.deepEqual(ids(again), [first, second], 'the one that fits is not taken alone');
    assert.doesNotMatch(again.inputRequests[first].params.message, /does not fit/);
    assert.match(again.inputRequests[second].params.message, /does not fit/);
    assert.match(again._meta.executionId, /^run_/);
    const { result: done } = await retry(again, { [first]: right, [second]: right });
    assert.deepEqual(done.structuredContent.result, [{ a: 4 }, { a: 4 }], JSON.stringify(done));
    assert.equal((await retry(needed, { [first]: right })).error.code, -32602, 'it counts once');
  },

  // A client that cannot show its form after all: the person decides on the page, and `wait` says so.
  async unshown() {
    const elicit = () => {
      throw new Error('no screen');
    };
    for (const era of eras.slice(0, 2)) {
      for (const way of ways) {
        const client = await link({ era, way, query: { elicitation_mode: 'native' }, elicit });
        const told = await execute(client, ask);
        const { status, executionId, approvalUrl } = told.structuredContent;
        const [page, session] = approvalUrl.split('?mcp_session_id=');
        assert.deepEqual([status, page], ['user_approval_required', `${config.url}/resume/${executionId}`]);
        assert.match(session, /^[0-9a-f-]{36}$/, 'native mode of these revisions has sessions');
        assert.match(text(told), /call `wait`/);
        await answer(executionId, 'accept');
        assert.equal((await call(client, 'wait', { executionId })).structuredContent.status, 'completed');
        await client.close();
        const hasty = await link({ era, way, query: { elicitation_mode: 'native', wait: 20 }, elicit });
        const other = await startAsking(hasty, 'wait');
        const still = await call(hasty, 'wait', { executionId: other });
        assert.equal(still.structuredContent.status, 'user_approval_required', JSON.stringify(still));
        await answer(other, 'cancel');
        await hasty.close();
      }
    }
  },

  // Everything that is asked is asked at once.
  async together() {
    const options = { query: '?elicitation_mode=native', capabilities: { elicitation: { form: {} } } };
    const code = 'return (await Promise.all([1, 2, 3].map((n) => tools.demo.ask({ text: `m${n}` })))).length';
    const params = { name: 'execute', arguments: { code } };
    const ids = ({ inputRequests }) => Object.keys(inputRequests);
    let { result: needed } = await post('tools/call', params, options);
    const retry = async (inputResponses) =>
      (await post('tools/call', { ...params, requestState: needed.requestState, inputResponses }, options)).result;
    for (let n = 0; n < 50 && ids(needed).length < 3; n += 1) needed = await retry({});
    assert.equal(ids(needed).length, 3);
    const done = await retry(Object.fromEntries(ids(needed).map((id) => [id, { action: 'accept' }])));
    assert.equal(done.structuredContent.result, 3, JSON.stringify(done));
  },

  // A form that no client can draw is a link to the page where it can be filled in.
  async undrawn() {
    const branch = { properties: { a: { type: 'integer' } }, required: ['a'] };
    const code = `return await tools.demo.form({ message: "m", schema: ${JSON.stringify({ oneOf: [branch] })} })`;
    await every(async (how) => {
      const elicit = async ({ mode, url }) => {
        assert.equal(mode, 'url');
        await answer(new URL(url).pathname.split('/').pop(), 'accept', { content: { a: 4 } });
        return { action: 'accept' };
      };
      const query = { elicitation_mode: 'native' };
      const client = await link({ ...how, query, elicit, modes: { form: {}, url: {} } });
      const told = await execute(client, code);
      assert.deepEqual(told.structuredContent.result, { a: 4 }, JSON.stringify([how, told]));
      await client.close();
    });
  },
};
