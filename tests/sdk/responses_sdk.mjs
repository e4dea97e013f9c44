// openai-node's Responses against a gateway: reads cases, makes each call, and writes what the SDK itself came to.
//
//     node responses_sdk.mjs http://127.0.0.1:8080/v1 < cases.json > reports.json

import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { main, note, version } from './cases.mjs';

const client = new OpenAI({ baseURL: process.argv[2], apiKey: 'sk-test', timeout: 60_000 });

function request({ model, tools }) {
  const parameters = { type: 'object', properties: {}, additionalProperties: false };
  return {
    model,
    input: 'Tell me of it.',
    ...(tools.length && { tools: tools.map((name) => ({ type: 'function', name, strict: true, parameters })) }),
  };
}

const noteResponse = (report, response) => note(report, { ...response, created: response.created_at });

/** What an accumulator, or an answer that was not streamed, holds. */
function whole(response, report) {
  noteResponse(report, response);
  const { output, usage } = response;
  const messages = output.filter((item) => item.type === 'message');
  report.text = messages.flatMap((item) => item.content.map((part) => part.text ?? '')).join('');
  report.blocks = output.map((item) => item.type);
  report.calls = output
    .filter((item) => item.type === 'function_call')
    .map((call) => [call.call_id, call.name, call.arguments]);
  report.role = messages.every((item) => item.role === 'assistant') ? 'assistant' : 'another';
  report.finish = response.status;
  report.usage = usage ? [usage.input_tokens, usage.output_tokens, usage.total_tokens] : null;
}

/** Plain iteration; what the events add up to must be what the last one holds. */
async function raw(one, report) {
  const open = [];
  const args = [];
  let number = 0;
  for await (const event of await client.responses.create({ ...request(one), stream: true })) {
    assert.equal(event.sequence_number, number++, 'the numbers of the events');
    switch (event.type) {
      case 'response.created':
      case 'response.in_progress':
        noteResponse(report, event.response);
        break;
      case 'response.output_item.added':
        assert.equal(event.output_index, open.length, 'the number of the item');
        open.push(event.item.id);
        break;
      case 'response.output_text.delta':
        assert.equal(event.item_id, open[event.output_index]);
        report.text += event.delta;
        break;
      case 'response.function_call_arguments.delta':
        args[event.output_index] = (args[event.output_index] ?? '') + event.delta;
        break;
      case 'response.output_item.done':
        assert.equal(event.item.id, open[event.output_index], 'an item changed its id');
        break;
      case 'response.completed': {
        const text = report.text;
        whole(event.response, report);
        assert.equal(text, report.text, 'deltas and final answer differ');
        assert.deepEqual(event.response.output.map((item) => item.id), open);
        event.response.output.forEach((item, at) => {
          if (item.type === 'function_call') assert.equal(args[at] ?? '', item.arguments);
        });
      }
    }
  }
}

/** The SDK's own accumulator. */
async function helper(one, report) {
  const stream = client.responses.stream(request(one));
  let told = '';
  stream.on('response.created', (event) => noteResponse(report, event.response));
  stream.on('response.output_text.delta', (event) => {
    told += event.delta;
    report.text = told;
  });
  whole(await stream.finalResponse(), report);
  assert.equal(told, report.text, 'events and final answer differ');
}

async function once(one, report) {
  const response = await client.responses.create(request(one));
  whole(response, report);
  // What was told can be asked for again, until it is forgotten.
  assert.deepEqual((await client.responses.retrieve(response.id)).output, response.output);
  await client.responses.delete(response.id);
  await assert.rejects(client.responses.retrieve(response.id), OpenAI.NotFoundError);
}

function errorOf(error) {
  return {
    class: error.constructor.name,
    api: error instanceof OpenAI.APIError,
    status: error.status ?? null,
    retry_after: error.headers?.get('retry-after') ?? null,
    message: String(error.message),
  };
}

await main(`openai-node ${version('openai')}, Responses`, { raw, helper, whole: once }, errorOf);
