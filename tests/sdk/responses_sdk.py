"""openai-python's Responses against a gateway: reads cases, makes each call, and writes what the SDK itself came to.

    python3 responses_sdk.py http://127.0.0.1:8080/v1 < cases.json > reports.json
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import openai

CLIENT = openai.OpenAI(base_url=sys.argv[1], api_key="sk-test", timeout=60)


def request(case):
    body = {"model": case["model"], "input": "Tell me of it."}
    if case["tools"]:
        schema = {"type": "object", "properties": {}, "additionalProperties": False}
        body["tools"] = [{"type": "function", "name": n, "strict": True, "parameters": schema} for n in case["tools"]]
    return body


def note(report, response):
    """What must be the same wherever the answer is told."""
    for key, value in (("id", response.id), ("model", response.model), ("created", int(response.created_at))):
        if value not in report[key]:
            report[key].append(value)


def whole(response, report):
    """What an accumulator, or an answer that was not streamed, holds."""
    note(report, response)
    report["text"] = response.output_text
    report["blocks"] = [item.type for item in response.output]
    calls = [item for item in response.output if item.type == "function_call"]
    report["calls"] = [[c.call_id, c.name, c.arguments] for c in calls]
    roles = {item.role for item in response.output if item.type == "message"} or {"assistant"}
    report["role"] = ",".join(sorted(roles))
    report["finish"] = response.status
    usage = response.usage
    report["usage"] = usage and [usage.input_tokens, usage.output_tokens, usage.total_tokens]


def raw(case, report):
    """Plain iteration; what the events add up to must be what the last one holds."""
    numbers, open_items, done, text, args = [], {}, {}, "", {}
    with CLIENT.responses.create(stream=True, **request(case)) as stream:
        for event in stream:
            numbers.append(event.sequence_number)
            if event.type in ("response.created", "response.in_progress"):
                note(report, event.response)
            elif event.type == "response.output_item.added":
                assert event.output_index not in open_items, "an item began twice"
                open_items[event.output_index] = event.item.id
            elif event.type == "response.output_text.delta":
                assert open_items[event.output_index] == event.item_id, "a delta of no item"
                report["text"] += event.delta
            elif event.type == "response.function_call_arguments.delta":
                args[event.output_index] = args.get(event.output_index, "") + event.delta
            elif event.type == "response.output_item.done":
                assert open_items[event.output_index] == event.item.id, "an item changed its id"
                done[event.output_index] = event.item
            elif event.type == "response.completed":
                text = report["text"]
                whole(event.response, report)
                assert [item.id for item in event.response.output] == [done[i].id for i in sorted(done)]
                for index, item in enumerate(event.response.output):
                    if item.type == "function_call":
                        assert args.get(index, "") == item.arguments, "the pieces of a call are not the call"
    assert numbers == list(range(len(numbers))), f"the numbers of the events: {numbers}"
    assert text == report["text"], f"deltas and final answer differ: {text!r}"


def helper(case, report):
    """The SDK's own accumulator."""
    with CLIENT.responses.stream(**request(case)) as stream:
        for event in stream:
            if event.type == "response.created":
                note(report, event.response)
            if event.type == "response.output_text.delta":
                report["text"] += event.delta
        told = report["text"]
        whole(stream.get_final_response(), report)
        assert told == report["text"], f"events and final answer differ: {told!r}"


def once(case, report):
    response = CLIENT.responses.create(**request(case))
    whole(response, report)
    # What was told can be asked for again, until it is forgotten.
    assert CLIENT.responses.retrieve(response.id).output_text == report["text"]
    CLIENT.responses.delete(response.id)
    try:
        CLIENT.responses.retrieve(response.id)
        raise AssertionError("it was not forgotten")
    except openai.NotFoundError:
        pass


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
              "text": "", "calls": [], "blocks": [], "finish": None, "usage": None, "error": None}
    try:
        {"raw": raw, "helper": helper, "whole": once}[case["how"]](case, report)
    except Exception as error:  # every one of them belongs into the report
        report["error"] = error_of(error)
    return report


if __name__ == "__main__":
    with ThreadPoolExecutor(8) as pool:
        reports = list(pool.map(run, json.load(sys.stdin)))
    json.dump({"sdk": f"openai-python {openai.__version__}, Responses", "reports": reports}, sys.stdout)
