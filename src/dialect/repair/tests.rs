//! Refusals in the words of many vendors, and the way out that each names.

use super::*;

fn read(message: &str) -> Option<Remedy> {
    remedy(&Refused { message, code: "", param: "" })
}

fn drops(fields: &[&str]) -> Option<Remedy> {
    Some(Remedy::Drop { fields: names(fields), lasting: true })
}

fn inside(fields: &[&str]) -> Option<Remedy> {
    Some(Remedy::DropInside(names(fields)))
}

fn names(fields: &[&str]) -> Vec<String> {
    fields.iter().map(|field| (*field).to_owned()).collect()
}

#[test]
fn forms_are_read_from_the_words_of_many_vendors() {
    for (message, expected) in [
        ("Tool call id was call_abc but must be a-z, A-Z, 0-9, with a length of 9.", Remedy::CallIds(CallIds::Nine)),
        (
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            Remedy::CallIds(CallIds::Word),
        ),
        ("messages: `tool_use` ids must be unique", Remedy::CallIds(CallIds::Word)),
        (
            "Value 'x:0' at 'messages.2.member.content.1.member.toolUse.toolUseId' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
            Remedy::CallIds(CallIds::Word),
        ),
        (
            "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 52 instead.",
            Remedy::CallIds(CallIds::Short),
        ),
        (
            "Failed to deserialize the JSON body into the target type: messages[0].role: unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool` at line 1 column 58",
            Remedy::Instructions(Instructions::System),
        ),
        (
            "'developer' is not one of ['system', 'assistant', 'user', 'tool', 'function'] - 'messages.0.role'",
            Remedy::Instructions(Instructions::System),
        ),
        ("Invalid role: developer role is not supported by this model", Remedy::Instructions(Instructions::System)),
        ("Developer instruction is not enabled for models/gemma-3-27b-it", Remedy::Instructions(Instructions::User)),
        ("System role not supported", Remedy::Instructions(Instructions::User)),
        ("System message must be at the beginning.", Remedy::Instructions(Instructions::First)),
        ("'messages.0' : discriminator property 'role' has invalid value", Remedy::Instructions(Instructions::System)),
        ("Missing `reasoning_content` field in the assistant message at message index 1.", Remedy::NoThinking),
        ("temperature: range: 0..1", Remedy::Drop { fields: names(&["temperature"]), lasting: false }),
        (
            "invalid request: temperature must be between 0 and 1.0 inclusive.",
            Remedy::Drop { fields: names(&["temperature"]), lasting: false },
        ),
        (
            "invalid temperature: only 1 is allowed for this model",
            Remedy::Drop { fields: names(&["temperature"]), lasting: true },
        ),
        (
            "messages.1.assistant.reasoning_content: property 'messages.1.assistant.reasoning_content' is unsupported",
            Remedy::StripReasoning,
        ),
        (
            "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]",
            Remedy::StripReasoning,
        ),
        ("The `reasoning_content` in the thinking mode must be passed back to the API.", Remedy::NoThinking),
        (
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
            Remedy::NoThinking,
        ),
        ("Function call is missing a thought_signature in functionCall parts.", Remedy::MarkCalls),
        ("Thought signature is not valid.", Remedy::StripReasoning),
        ("max_tokens and max_completion_tokens cannot both be set", Remedy::OneLimit),
        ("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.", Remedy::OneLimit),
        ("Conversation roles must alternate user/assistant/user/assistant/...", Remedy::Alternate),
        ("After the optional system message, conversation roles must alternate user/assistant", Remedy::Alternate),
        (
            "'messages.0' : for 'role:user' the following must be satisfied[('messages.0.content' : value must be a string)]",
            Remedy::Flat,
        ),
        (
            "Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL.",
            Remedy::ToolText,
        ),
    ] {
        assert_eq!(read(message), Some(expected), "{message}");
    }
}

#[test]
fn kinds_of_content_that_a_target_lacks() {
    for (message, expected) in [
        (
            "Failed to deserialize the JSON body into the target type: messages[0]: unknown variant `image_url`, expected `text` at line 1 column 94",
            Some(Modality::Image),
        ),
        ("Invalid content type. image_url is only supported by certain models.", Some(Modality::Image)),
        ("No endpoints found that support image input", Some(Modality::Image)),
        ("No endpoints found that support input audio", Some(Modality::Audio)),
        ("This model does not support image inputs", Some(Modality::Image)),
        ("At most 0 image(s) may be provided in one prompt.", Some(Modality::Image)),
        ("m-b is not a multimodal model", Some(Modality::Image)),
        ("unknown variant `input_audio`, expected one of `text`, `image_url`", Some(Modality::Audio)),
        ("This model does not support audio input.", Some(Modality::Audio)),
        ("PDF documents are not supported by this model: it does not support file input", Some(Modality::File)),
        // About this picture, not about pictures.
        ("Unsupported image format: image/bmp", None),
        ("messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg'", None),
        ("The image is too large and not supported", None),
    ] {
        assert_eq!(lacks(&message.to_ascii_lowercase()), expected, "{message}");
    }
}

#[test]
fn ceilings_are_read_from_the_number() {
    for (message, tokens, lasting) in [
        (
            "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model",
            8192,
            true,
        ),
        (
            "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.",
            16_384,
            true,
        ),
        ("max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens for claude-x", 64_000, true),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192, true),
        ("Range of max_tokens should be [1, 8192]", 8192, true),
        ("max_tokens must be between 1 and 4,096", 4096, true),
        (
            "The maximum tokens you requested exceeds the model limit of 8192. Try again with a maximum tokens value that is lower than 8192.",
            8191,
            true,
        ),
        ("max_new_tokens must be <= 4096. Given: 9000", 4096, true),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 16384 tokens and your request has 200 input tokens (32000 > 16384 - 200).",
            16_184,
            false,
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (1000 in the messages, 4000 in the completion).",
            3096,
            false,
        ),
        (
            "input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000, decrease input length or `max_tokens` and try again",
            10_000,
            false,
        ),
    ] {
        assert_eq!(read(message), Some(Remedy::Cap { tokens, lasting }), "{message}");
    }
    // Nothing worth asking for is left.
    assert_eq!(
        read(
            "This model's maximum context length is 4096 tokens. However, you requested 8000 tokens (4000 in the messages, 4000 in the completion)."
        ),
        None
    );
    assert_eq!(
        read("max_tokens must be at least 1, got -1."),
        Some(Remedy::Drop { fields: names(&["max_tokens", "max_completion_tokens"]), lasting: false })
    );
}

#[test]
fn fields_are_read_from_lists_quotes_and_paths() {
    for (message, expected) in [
        (
            "Unrecognized request arguments supplied: call, customer, elevenlabs_extra_body, session_id, user_id",
            drops(&["call", "customer", "elevenlabs_extra_body", "session_id", "user_id"]),
        ),
        ("Unrecognized request argument supplied: parallel_tool_calls", drops(&["parallel_tool_calls"])),
        ("Unknown parameter: 'session_id'.", drops(&["session_id"])),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            drops(&["max_tokens"]),
        ),
        (
            "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra inputs are not permitted', 'input': 800}]",
            drops(&["max_completion_tokens"]),
        ),
        (
            "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted', 'input': 1}, {'type': 'extra_forbidden', 'loc': ('body', 'user'), 'msg': 'Extra inputs are not permitted', 'input': {'a': 1}}]",
            drops(&["seed", "user"]),
        ),
        (
            "Additional properties are not allowed ('call', 'session_id' were unexpected)",
            drops(&["call", "session_id"]),
        ),
        ("Additional properties are not allowed ('seed' was unexpected)", drops(&["seed"])),
        ("Unrecognized key(s) in object: 'customer', 'call'", drops(&["customer", "call"])),
        (
            "Failed to deserialize the JSON body: unknown field `session_id`, expected one of `model`, `messages`",
            drops(&["session_id"]),
        ),
        (
            "Invalid JSON payload received. Unknown name \"session_id\": Cannot find field.\nInvalid JSON payload received. Unknown name \"customer\": Cannot find field.",
            drops(&["session_id", "customer"]),
        ),
        ("Completions.create() got an unexpected keyword argument 'session_id'", drops(&["session_id"])),
        ("property 'service_tier' is unsupported", drops(&["service_tier"])),
        ("`temperature` is deprecated for this model.", drops(&["temperature"])),
        ("Model grok-4 does not support parameter reasoningEffort.", drops(&["reasoning_effort"])),
        ("azure does not support parameters: ['seed', 'user'], for model=x", drops(&["seed", "user"])),
        (
            "body.seed: Extra inputs are not permitted; body.user: Extra inputs are not permitted",
            drops(&["seed", "user"]),
        ),
        ("Unknown parameter: 'messages[0].foo'.", inside(&["foo"])),
        ("messages.0.content.0.text.cache_control: Extra inputs are not permitted", inside(&["cache_control"])),
        ("system.2.cache_control.ephemeral.scope: Extra inputs are not permitted", inside(&["cache_control.scope"])),
        ("'messages.0' : property 'name' is unsupported", inside(&["name"])),
        ("Unknown parameter: 'tools[0].function.strict'.", inside(&["strict"])),
        ("Unsupported parameter: 'tools'", None),
        ("messages.0.role: Extra inputs are not permitted", None),
        ("This feature is not supported", None),
        ("The model gpt-4.1 is not supported", None),
        ("Invalid value for 'temperature': must be at most 2", None),
        (
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
            drops(&["temperature"]),
        ),
        (
            "Unsupported value: 'temperature' does not support 3 with this model.",
            Some(Remedy::Drop { fields: names(&["temperature"]), lasting: false }),
        ),
    ] {
        assert_eq!(read(message), expected, "{message}");
    }
}

#[test]
fn whatever_is_said_it_is_read_in_bounds() {
    for text in [
        "'",
        "[",
        "unknown parameter: ",
        "unexpected field 'a', ",
        "{'loc': (",
        "max_tokens 1,000,000 > [",
        "ä' is unsupported ",
    ] {
        let long = text.repeat(4000 / text.len());
        let found = read(&long);
        if let Some(Remedy::Drop { fields, .. } | Remedy::DropInside(fields)) = found {
            assert!(fields.len() <= 32, "{text}");
        }
    }
}
