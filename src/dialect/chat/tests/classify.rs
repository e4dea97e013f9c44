//! What each provider's errors mean.

#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use crate::dialect::Provider;
use crate::dialect::chat::Chat;
use crate::failure::{Failure, Kind, Remedy, RetryAt, Said, Stage};
use http::{HeaderMap, HeaderName};
use std::time::Duration;

fn classify(status: u16, headers: &[(&str, &str)], body: &str) -> Failure {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
    }
    Chat.classify(status, &map, body.as_bytes())
}

fn error(message: &str) -> String {
    serde_json::json!({ "error": { "message": message, "type": "invalid_request_error", "param": null, "code": null } })
        .to_string()
}

#[test]
fn statuses() {
    for (status, kind) in [
        (400, Kind::NotForUs),
        (401, Kind::Auth),
        (402, Kind::QuotaExhausted),
        (403, Kind::Auth),
        (404, Kind::NotForUs),
        (408, Kind::ServerError),
        (409, Kind::ServerError),
        (413, Kind::ContextTooLong),
        (415, Kind::NotForUs),
        (422, Kind::NotForUs),
        (425, Kind::ServerError),
        (429, Kind::RateLimited),
        (499, Kind::ServerError),
        (500, Kind::ServerError),
        (502, Kind::ServerError),
        (503, Kind::Overloaded),
        (504, Kind::ServerError),
        (520, Kind::ServerError),
        (522, Kind::ServerError),
        (524, Kind::ServerError),
        (529, Kind::Overloaded),
        (302, Kind::Framing),
        (200, Kind::Framing),
    ] {
        let failure = classify(status, &[], "");
        assert_eq!((failure.kind, failure.status, failure.stage), (kind, Some(status), Stage::Refused), "{status}");
        assert!(failure.said.message.contains(&status.to_string()));
    }
    assert_eq!(classify(403, &[("retry-after", "3")], "").kind, Kind::RateLimited);
}

#[test]
fn bodies_of_each_provider() {
    for (name, status, body, kind) in [
        (
            "OpenAI",
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
            Kind::QuotaExhausted,
        ),
        (
            "OpenAI",
            429,
            r#"{"error":{"message":"Rate limit reached","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
            Kind::RateLimited,
        ),
        (
            "OpenAI",
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            Kind::ContextTooLong,
        ),
        (
            "OpenAI",
            404,
            r#"{"error":{"message":"The model `x` does not exist or you do not have access to it.","code":"model_not_found"}}"#,
            Kind::NotForUs,
        ),
        (
            "OpenAI",
            503,
            r#"{"error":{"message":"The engine is currently overloaded","type":"server_error"}}"#,
            Kind::Overloaded,
        ),
        ("OpenAI", 401, r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#, Kind::Auth),
        (
            "Azure",
            400,
            r#"{"error":{"code":"content_filter","param":"prompt","status":400,"message":"filtered","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
            Kind::ContentFiltered,
        ),
        (
            "Azure",
            400,
            r#"{"error":{"code":null,"message":"x","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
            Kind::ContentFiltered,
        ),
        (
            "vLLM",
            400,
            r#"{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 5000","type":"BadRequestError","param":null,"code":400}}"#,
            Kind::ContextTooLong,
        ),
        (
            "SGLang",
            400,
            r#"{"object":"error","message":"The input (9000 tokens) is longer than the model's context length (8192 tokens).","type":"BadRequestError","param":null,"code":400}"#,
            Kind::ContextTooLong,
        ),
        (
            "llama.cpp",
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            Kind::ContextTooLong,
        ),
        (
            "llama.cpp",
            503,
            r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
            Kind::Overloaded,
        ),
        (
            "Ollama",
            404,
            r#"{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error"}}"#,
            Kind::NotForUs,
        ),
        ("OpenRouter", 402, r#"{"error":{"code":402,"message":"Insufficient credits"}}"#, Kind::QuotaExhausted),
        (
            "OpenRouter",
            403,
            r#"{"error":{"code":403,"message":"Input flagged","metadata":{"reasons":["x"],"flagged_input":"…"}}}"#,
            Kind::ContentFiltered,
        ),
        (
            "OpenRouter",
            404,
            r#"{"error":{"code":404,"message":"No endpoints found that support tool use"}}"#,
            Kind::Repairable,
        ),
        (
            "OpenRouter",
            400,
            r#"{"error":{"code":400,"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 210000 tokens\"}}","provider_name":"P"}}}"#,
            Kind::ContextTooLong,
        ),
        (
            "OpenRouter",
            502,
            r#"{"error":{"code":502,"message":"x","metadata":{"error_type":"provider_overloaded"}}}"#,
            Kind::Overloaded,
        ),
        (
            "Groq",
            413,
            r#"{"error":{"message":"Request too large for model on tokens per minute","type":"tokens","code":"rate_limit_exceeded"}}"#,
            Kind::RateLimited,
        ),
        ("Groq", 498, r#"{"error":{"message":"x","type":"flex_tier"}}"#, Kind::Overloaded),
        (
            "Together",
            503,
            r#"{"error":{"message":"Engine Overloaded","type":"service_unavailable"}}"#,
            Kind::Overloaded,
        ),
        (
            "DeepSeek",
            402,
            r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}"#,
            Kind::QuotaExhausted,
        ),
        (
            "Mistral",
            429,
            r#"{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","param":null,"code":"3505"}"#,
            Kind::RateLimited,
        ),
        (
            "Mistral",
            422,
            r#"{"detail":[{"type":"missing","loc":["body","messages"],"msg":"Field required"}]}"#,
            Kind::BadRequest,
        ),
        (
            "Anthropic",
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}"#,
            Kind::QuotaExhausted,
        ),
        (
            "Gemini",
            429,
            r#"[{"error":{"code":429,"message":"Resource exhausted","status":"RESOURCE_EXHAUSTED"}}]"#,
            Kind::RateLimited,
        ),
        ("proxy", 502, "<html><head><title>502 Bad Gateway</title></head></html>", Kind::ServerError),
        ("any", 200, r#"{"error":{"message":"rate limited","type":"rate_limit_error","code":429}}"#, Kind::RateLimited),
        ("any", 200, r#"{"error":{"message":"x","type":"overloaded_error"}}"#, Kind::Overloaded),
        ("any", 200, r#"{"error":"no such key","code":"invalid_api_key"}"#, Kind::Auth),
        ("any", 200, r#"{"error":true,"message":"slow down","code":"429"}"#, Kind::RateLimited),
        ("any", 200, r#"{"error":{"message":"x","type":"authentication_error"}}"#, Kind::Auth),
        ("any", 200, r#"{"error":{"message":"x","type":"invalid_request_error"}}"#, Kind::BadRequest),
        ("any", 500, r#"{"error":{"message":"x","type":"overloaded_error"}}"#, Kind::Overloaded),
    ] {
        assert_eq!(classify(status, &[], body).kind, kind, "{name} {status} {body}");
    }
}

#[test]
fn wordings_of_a_prompt_that_is_too_long() {
    for message in [
        "context too large",
        "Prompt is too long: 1 > 2",
        "Input is too long for requested model.",
        "Requested input is longer than the context length of the model",
        "too many tokens: total number of tokens in the prompt",
        "input length and `max_tokens` exceed context limit",
        "Your input exceeds the context window of this model.",
    ] {
        assert_eq!(classify(400, &[], &error(message)).kind, Kind::ContextTooLong, "{message}");
    }
    let throttled = classify(429, &[], &error("Too many tokens, please wait before trying again."));
    assert_eq!(throttled.kind, Kind::RateLimited);
}

#[test]
fn refused_prefills_are_asked_the_other_way() {
    for message in [
        "This model does not support assistant message prefill. The conversation must end with a user message.",
        "assistant message prefill is not supported; end with a user message",
        "Cannot have 2 or more assistant messages at the end of the list.",
        "Assistant response prefill is incompatible with enable_thinking.",
        "Requests ending with a model turn are not supported (unless the last part is a function response)",
        "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
        "prefix is only available when using beta api (set base_url=\"https://api.deepseek.com/beta\")",
        "The last message of deepseek-reasoner must be a user message, or an assistant message with prefix mode on",
        "final assistant content cannot end with trailing whitespace",
        "Unrecognized request argument supplied: continue_final_message",
    ] {
        let failure = classify(400, &[], &error(message));
        assert_eq!((failure.kind, failure.remedy), (Kind::Repairable, Some(Remedy::Instruct)), "{message}");
    }
}

#[test]
fn refused_signatures_are_left_out() {
    for message in [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "Thought signature is not valid.",
        "The encrypted content could not be verified.",
    ] {
        assert_eq!(classify(400, &[], &error(message)).remedy, Some(Remedy::StripReasoning), "{message}");
    }
}

#[test]
fn optional_fields_that_are_not_supported_are_left_out() {
    let drops = |fields: &[&str], lasting| {
        Some(Remedy::Drop { fields: fields.iter().map(|field| (*field).to_owned()).collect(), lasting })
    };
    let drop = |field: &str| drops(&[field], true);
    for (body, remedy) in [
        (error("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."), drop("max_tokens")),
        (r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model.","param":"temperature","code":"unsupported_value"}}"#.to_owned(), drops(&["temperature"], false)),
        (r#"{"error":{"message":"no","param":"reasoning_effort","code":"unsupported_parameter"}}"#.to_owned(), drop("reasoning_effort")),
        (error("Model grok-4 does not support parameter reasoningEffort."), drop("reasoning_effort")),
        (error("azure does not support parameters: ['seed', 'user'], for model=x"), drops(&["seed", "user"], true)),
        (error("Unrecognized request argument supplied: parallel_tool_calls"), drop("parallel_tool_calls")),
        (error("property 'service_tier' is unsupported"), drop("service_tier")),
        (error("`top_p` is deprecated for this model."), drop("top_p")),
        (r#"{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}"#.to_owned(), drop("stream_options")),
        (r#"{"detail":[{"type":"extra_forbidden","loc":["body","messages",0,"name"],"msg":"Extra inputs are not permitted"}]}"#.to_owned(), Some(Remedy::DropInside(vec!["name".to_owned()]))),
        (error("Unsupported parameter: 'tools'"), None),
        (error("Unknown parameter: 'messages[0].foo'."), Some(Remedy::DropInside(vec!["foo".to_owned()]))),
        (error("This feature is not supported"), None),
        (error("Invalid value for 'temperature': must be at most 2"), None),
    ] {
        let failure = classify(400, &[], &body);
        assert_eq!(failure.remedy, remedy, "{body}");
        let kinds: &[Kind] =
            if remedy.is_some() { &[Kind::Repairable] } else { &[Kind::BadRequest, Kind::Repairable] };
        assert!(kinds.contains(&failure.kind), "{body}: {:?}", failure.kind);
    }
}

#[test]
fn times_to_ask_again() {
    let wait = |ms| Some(RetryAt::In(Duration::from_millis(ms)));
    let limited = error("slow down");
    assert_eq!(classify(429, &[("retry-after", "2")], &limited).retry_at, wait(2000));
    assert_eq!(classify(429, &[("retry-after-ms", "50"), ("retry-after", "9")], &limited).retry_at, wait(50));
    let info =
        r#"{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1s"}]}}"#;
    assert_eq!(classify(429, &[], info).retry_at, wait(1000));
    assert_eq!(classify(429, &[("retry-after", "5")], info).retry_at, wait(5000));
    assert_eq!(classify(503, &[("retry-after", "5")], "").retry_at, wait(5000));
    assert_eq!(classify(429, &[("retry-after", "5"), ("x-should-retry", "false")], &limited).retry_at, None);
    assert_eq!(classify(400, &[("retry-after", "5")], &error("wrong")).retry_at, None);
}

#[test]
fn the_providers_words_are_kept() {
    let body = r#"{"error":{"message":"m","type":"t","param":"p","code":"c"}}"#;
    let expected =
        Said { r#type: "t".to_owned(), code: "c".to_owned(), message: "m".to_owned(), param: "p".to_owned() };
    assert_eq!(classify(400, &[], body).said, expected);
    let numbers = classify(200, &[], r#"{"error":{"message":"m","code":502}}"#);
    assert_eq!((numbers.status, &*numbers.said.code), (Some(502), "502"));
    assert_eq!(classify(502, &[], "<HTML><TITLE> Bad </TITLE>").said.message, "an HTML page: Bad");
    assert_eq!(classify(502, &[], "upstream gone\n").said.message, "upstream gone");
    assert_eq!(classify(500, &[], &error(&"x".repeat(9000))).said.message.len(), 9000, "it is cut later");
}
