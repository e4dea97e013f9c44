"""anthropic-python against a gateway: reads cases, makes each call, and writes what the SDK itself came to.

    python3 anthropic_sdk.py http://127.0.0.1:8080 < cases.json > reports.json
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import anthropic

CLIENT = anthropic.Anthropic(base_url=sys.argv[1], api_key="sk-test", timeout=60)


def request(case):
    body = {
        "model": case["model"],
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": "Tell me of it."}],
    }
    if case["tools"]:
        schema = {"type": "object", "properties": {}}
        body["tools"] = [{"name": n, "description": "A tool.", "input_schema": schema} for n in case["tools"]]
    return body


def note(report, message):
    for key in ("id", "model"):
        value = getattr(message, key)
        if value not in report[key]:
            report[key].append(value)


def counts(usage):
    return [usage.input_tokens, usage.output_tokens, usage.input_tokens + usage.output_tokens]


def whole(message, report):
    """What an accumulator, or an answer that was not streamed, holds."""
    note(report, message)
    report["role"] = message.role
    report["text"] = "".join(block.text for block in message.content if block.type == "text")
    report["calls"] = [[b.id, b.name, json.dumps(b.input)] for b in message.content if b.type == "tool_use"]
    report["blocks"] = [block.type for block in message.content]
    report["finish"] = message.stop_reason
    report["usage"] = counts(message.usage)


def raw(case, report):
    """Plain iteration, put together as an application would."""
    blocks = {}
    with CLIENT.messages.create(stream=True, **request(case)) as stream:
        for event in stream:
            if event.type == "message_start":
                note(report, event.message)
                report["role"] = event.message.role
                report["usage"] = counts(event.message.usage)
            elif event.type == "content_block_start":
                blocks[event.index] = event.content_block
                if event.content_block.type == "tool_use":
                    report["calls"].append([event.content_block.id, event.content_block.name, ""])
                report["blocks"] = [blocks[index].type for index in sorted(blocks)]
            elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                report["text"] += event.delta.text
            elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                report["calls"][-1][2] += event.delta.partial_json
            elif event.type == "message_delta":
                report["finish"] = event.delta.stop_reason
                report["usage"][1] = event.usage.output_tokens
                report["usage"][0] = event.usage.input_tokens or report["usage"][0]
                report["usage"][2] = sum(report["usage"][:2])


def helper(case, report):
    """The SDK's own accumulator."""
    with CLIENT.messages.stream(**request(case)) as stream:
        for text in stream.text_stream:
            report["text"] += text
        told = report["text"]
        whole(stream.get_final_message(), report)
        if told != report["text"]:
            report["error"] = {"class": "events and final message differ", "message": told}


def once(case, report):
    whole(CLIENT.messages.create(**request(case)), report)


def error_of(error):
    status = isinstance(error, anthropic.APIStatusError)
    return {
        "class": type(error).__name__,
        "api": isinstance(error, anthropic.APIError),
        # An error event of a stream is one of these too, with the status of the stream.
        "status": error.status_code if status and error.status_code != 200 else None,
        "retry_after": error.response.headers.get("retry-after") if status else None,
        "message": str(error),
    }


def run(case):
    report = {"name": case["name"], "how": case["how"], "id": [], "model": [], "created": [], "role": None,
              "text": "", "calls": [], "blocks": [], "finish": None, "usage": None, "error": None}
    try:
        {"raw": raw, "helper": helper, "whole": once}[case["how"]](case, report)
    except Exception as error:  # every one of them belongs into the report
        report["error"] = error_of(error)
    return report


if __name__ == "__main__":
    with ThreadPoolExecutor(8) as pool:
        reports = list(pool.map(run, json.load(sys.stdin)))
    json.dump({"sdk": f"anthropic-python {anthropic.__version__}", "reports": reports}, sys.stdout)
