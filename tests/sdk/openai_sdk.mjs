// openai-node against a gateway: reads cases, makes each call, and writes what the SDK itself came to.
//
//     node openai_sdk.mjs http://127.0.0.1:8080/v1 < cases.json > reports.json

import OpenAI from 'openai';
import { main, note, version } from './cases.mjs';

const client = new OpenAI({ baseURL: process.argv[2], apiKey: 'sk-test', timeout: 60_000 });

function request({ model, tools }) {
  const parameters = { type: 'object', properties: {}, additionalProperties: false };
  return {
    model,
    messages: [{ role: 'user', content: 'Tell me of it.' }],
    ...(tools.length && {
      tools: tools.map((name) => ({ type: 'function', function: { name, strict: true, parameters } })),
    }),
  };
}

const counts = (usage) => usage && [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens];

/** What an accumulator, or an answer that was not streamed, holds. */
function whole(completion, report) {
  note(report, completion);
  const [{ message, finish_reason }] = completion.choices;
  report.role = message.role;
  report.text = message.content ?? '';
  report.calls = (message.tool_calls ?? []).map((c) => [c.id, c.function.name, c.function.arguments]);
  report.finish = finish_reason;
  report.usage = counts(completion.usage) ?? null;
}

/** Plain iteration, put together as an application would. */
async function raw(one, report) {
  report.role = '';
  const calls = [];
  for await (const chunk of await client.chat.completions.create({ ...request(one), stream: true })) {
    note(report, chunk);
    report.usage = counts(chunk.usage) ?? report.usage;
    for (const { delta, finish_reason } of chunk.choices) {
      report.role += delta.role ?? '';
      report.text += delta.content ?? '';
      report.finish = finish_reason ?? report.finish;
      for (const piece of delta.tool_calls ?? []) {
        const call = (calls[piece.index] ??= ['', '', '']);
        call[0] += piece.id ?? '';
        call[1] += piece.function?.name ?? '';
        call[2] += piece.function?.arguments ?? '';
      }
      report.calls = calls;
    }
  }
}

/** The SDK's own accumulator, with usage. */
async function helper(one, report) {
  const stream = client.chat.completions.stream({ ...request(one), stream_options: { include_usage: true } });
  stream.on('content', (delta) => (report.text += delta));
  const completion = await stream.finalChatCompletion();
  const told = report.text;
  whole(completion, report);
  if (told !== report.text) report.error = { class: 'events and final message differ', message: told };
}

async function once(one, report) {
  whole(await client.chat.completions.create(request(one)), report);
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

await main(`openai-node ${version('openai')}`, { raw, helper, whole: once }, errorOf);
