// @anthropic-ai/sdk against a gateway: reads cases, makes each call, and writes what the SDK itself came to.
//
//     node anthropic_sdk.mjs http://127.0.0.1:8080 < cases.json > reports.json

import Anthropic from '@anthropic-ai/sdk';
import { main, note, version } from './cases.mjs';

const client = new Anthropic({ baseURL: process.argv[2], apiKey: 'sk-test', timeout: 60_000 });

function request({ model, tools }) {
  const input_schema = { type: 'object', properties: {} };
  return {
    model,
    max_tokens: 4096,
    messages: [{ role: 'user', content: 'Tell me of it.' }],
    ...(tools.length && { tools: tools.map((name) => ({ name, description: 'A tool.', input_schema })) }),
  };
}

const counts = (usage) => [usage.input_tokens, usage.output_tokens, usage.input_tokens + usage.output_tokens];

/** What an accumulator, or an answer that was not streamed, holds. */
function whole(message, report) {
  note(report, message);
  const of = (type) => message.content.filter((block) => block.type === type);
  report.role = message.role;
  report.text = of('text').map((block) => block.text).join('');
  report.calls = of('tool_use').map((block) => [block.id, block.name, JSON.stringify(block.input)]);
  report.blocks = message.content.map((block) => block.type);
  report.finish = message.stop_reason;
  report.usage = counts(message.usage);
}

/** Plain iteration, put together as an application would. */
async function raw(one, report) {
  for await (const event of await client.messages.create({ ...request(one), stream: true })) {
    if (event.type === 'message_start') {
      note(report, event.message);
      report.role = event.message.role;
      report.usage = counts(event.message.usage);
    } else if (event.type === 'content_block_start') {
      report.blocks[event.index] = event.content_block.type;
      if (event.content_block.type === 'tool_use') {
        report.calls.push([event.content_block.id, event.content_block.name, '']);
      }
    } else if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') {
      report.text += event.delta.text;
    } else if (event.type === 'content_block_delta' && event.delta.type === 'input_json_delta') {
      report.calls.at(-1)[2] += event.delta.partial_json;
    } else if (event.type === 'message_delta') {
      report.finish = event.delta.stop_reason;
      const input = event.usage.input_tokens || report.usage[0];
      report.usage = [input, event.usage.output_tokens, input + event.usage.output_tokens];
    }
  }
}

/** The SDK's own accumulator. */
async function helper(one, report) {
  const stream = client.messages.stream(request(one));
  stream.on('text', (delta) => (report.text += delta));
  const message = await stream.finalMessage();
  const told = report.text;
  whole(message, report);
  if (told !== report.text) report.error = { class: 'events and final message differ', message: told };
}

async function once(one, report) {
  whole(await client.messages.create(request(one)), report);
}

function errorOf(error) {
  return {
    class: error.constructor.name,
    api: error instanceof Anthropic.APIError,
    status: error.status ?? null,
    retry_after: error.headers?.get('retry-after') ?? null,
    message: String(error.message),
  };
}

await main(`@anthropic-ai/sdk ${version('@anthropic-ai/sdk')}`, { raw, helper, whole: once }, errorOf);
