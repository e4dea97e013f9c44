"""openai-python against a gateway: reads cases, makes each call, and writes what the SDK itself came to.

    python3 openai_sdk.py http://127.0.0.1:8080/v1 < cases.json > reports.json
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import openai

CLIENT = openai.OpenAI(base_url=sys.argv[1], api_key="sk-test", timeout=60)


def tools(names):
    """Strict ones, since `.stream()` takes no others."""
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    return [{"type": "function", "function": {"name": n, "strict": True, "parameters": schema}} for n in names]


def request(case):
    body = {"model": case["model"], "messages": [{"role": "user", "content": "Tell me of it."}]}
    if case["tools"]:
        body["tools"] = tools(case["tools"])
    return body


def note(report, part):
    """What must be the same in every chunk of a turn."""
    for key in ("id", "model", "created"):
        value = getattr(part, key)
        if value not in report[key]:
            report[key].append(value)


def counts(usage):
    return usage and [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens]


def whole(completion, report):
    """What an accumulator, or an answer that was not streamed, holds."""
    note(report, completion)
    choice = completion.choices[0]
    message = choice.message
    report["role"] = message.role
    report["text"] = message.content or ""
    report["calls"] = [[c.id, c.function.name, c.function.arguments] for c in message.tool_calls or []]
    report["finish"] = choice.finish_reason
    report["usage"] = counts(completion.usage)


def raw(case, report):
    """Plain iteration, put together as an application would."""
    report["role"] = ""
    calls = {}
    with CLIENT.chat.completions.create(stream=True, **request(case)) as stream:
        for chunk in stream:
            note(report, chunk)
            report["usage"] = counts(chunk.usage) or report["usage"]
            for choice in chunk.choices:
                delta = choice.delta
                report["role"] += delta.role or ""
                report["text"] += delta.content or ""
                report["finish"] = choice.finish_reason or report["finish"]
                for piece in delta.tool_calls or []:
                    call = calls.setdefault(piece.index, ["", "", ""])
                    call[0] += piece.id or ""
                    call[1] += piece.function.name or ""
                    call[2] += piece.function.arguments or ""
                report["calls"] = [calls[index] for index in sorted(calls)]


def helper(case, report):
    """The SDK's own accumulator, with usage."""
    usage = {"include_usage": True}
    with CLIENT.chat.completions.stream(stream_options=usage, **request(case)) as stream:
        for event in stream:
            if event.type == "content.delta":
                report["text"] += event.delta
        told = report["text"]
        whole(stream.get_final_completion(), report)
        if told != report["text"]:
            report["error"] = {"class": "events and final message differ", "message": told}


def once(case, report):
    whole(CLIENT.chat.completions.create(**request(case)), report)


def error_of(error):
    status = isinstance(error, openai.APIStatusError)
    return {
        "class": type(error).__name__,
        "api": isinstance(error, openai.APIError),
        "status": error.status_code if status else None,
        "retry_after": error.response.headers.get("retry-after") if status else None,
        "message": str(error),
    }


def run(case):
    report = {"name": case["name"], "how": case["how"], "id": [], "model": [], "created": [], "role": None,
              "text": "", "calls": [], "finish": None, "usage": None, "error": None}
    try:
        {"raw": raw, "helper": helper, "whole": once}[case["how"]](case, report)
    except Exception as error:  # every one of them belongs into the report
        report["error"] = error_of(error)
    return report


if __name__ == "__main__":
    with ThreadPoolExecutor(8) as pool:
        reports = list(pool.map(run, json.load(sys.stdin)))
    json.dump({"sdk": f"openai-python {openai.__version__}", "reports": reports}, sys.stdout)
