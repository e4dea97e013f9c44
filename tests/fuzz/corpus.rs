//! Real-shaped inputs to start from.

use std::path::Path;

/// Transcripts of every kind of provider.
pub(crate) fn transcripts() -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for dialect in ["chat", "anthropic"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(dialect);
        let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let streams = paths.iter().filter(|path| path.extension().is_some_and(|e| e == "sse"));
        found.extend(streams.map(|path| std::fs::read(path).unwrap()));
    }
    found
}

/// Clients' requests.
pub(crate) fn requests() -> Vec<Vec<u8>> {
    owned(&REQUESTS)
}

/// Whole answers, and errors.
pub(crate) fn bodies() -> Vec<Vec<u8>> {
    owned(&BODIES)
}

fn owned(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

const REQUESTS: [&str; 18] = [
    r#"{"model":"normal","stream":true,"instructions":"Be brief.","input":"Hello!","previous_response_id":"resp_1","store":false}"#,
    r#"{"model":"m","input":[{"role":"developer","content":"x"},{"role":"user","content":[{"type":"input_text","text":"weather?"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]},{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"segue:anthropic:signed:c2ln"},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"custom_tool_call","call_id":"b","name":"g","input":"x"},{"role":"user","content":"and?"},{"type":"function_call_output","call_id":"a","output":"sun"},{"type":"custom_tool_call_output","call_id":"b","output":[{"type":"input_text","text":"y"}]},{"type":"item_reference","id":"msg_1"}],"tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":true},{"type":"custom","name":"g","format":{"type":"grammar","syntax":"lark","definition":"a"}},{"type":"web_search"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}}"#,
    r#"{"model":"m","input":"a","conversation":{"id":"c"},"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}},"reasoning":{"effort":"high","summary":"auto"},"include":["reasoning.encrypted_content"],"max_output_tokens":50,"truncation":"auto","metadata":{"a":"b"}}"#,
    r#"{"model":"normal","stream":true,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello!"}]}"#,
    r#"{"model":"normal","messages":[{"role":"user","content":[{"type":"text","text":"What is this?","cache_control":{"type":"ephemeral"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}],"max_completion_tokens":50,"n":2,"stop":["a","b"]}"#,
    r#"{"model":"m","messages":[{"role":"developer","content":"x"},{"role":"user","content":"weather?"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}},{"id":"call_2","type":"function","function":{"name":"time","arguments":""}}]},{"role":"tool","tool_call_id":"call_1","content":"sunny"},{"role":"tool","tool_call_id":"call_2","content":[{"type":"text","text":"noon"}]}],"tools":[{"type":"function","function":{"name":"weather","description":"d","parameters":{"type":"object","properties":{"city":{"type":"string"}}},"strict":true}}],"tool_choice":"auto","parallel_tool_calls":false}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object"},"strict":true}},"temperature":0.5,"top_p":1,"seed":7,"reasoning_effort":"low","user":"u","metadata":{"a":"b"}}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"I th","reasoning_content":"hm","refusal":null}],"functions":[{"name":"f","parameters":{}}],"function_call":{"name":"f"},"stream_options":{"include_usage":true}}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"1"}],"modalities":["text","audio"],"store":true,"logit_bias":{"1":2}}"#,
    r#"{"model":"m","conversation_id":"c-1","turn_index":3,"messages":[{"role":"user","content":"and now?"}],"stream":true,"x_vendor":[1,{"a":null}]}"#,
    r#"{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}},{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]}"#,
    r#"{"model":"m","max_tokens":100,"system":"Be brief.","messages":[{"role":"user","content":"Hello"}],"stream":true}"#,
    r#"{"model":"m","max_tokens":100,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}],"stop_sequences":["x"],"metadata":{"user_id":"u"}}"#,
    r#"{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"w?"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Rome"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"sunny"}],"is_error":false}]}],"tools":[{"name":"weather","description":"d","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"weather","disable_parallel_tool_use":true}}"#,
    r#"{"model":"m","max_tokens":4000,"messages":[{"role":"user","content":"a"}],"thinking":{"type":"enabled","budget_tokens":2000},"output_config":{"effort":"high"},"temperature":1,"top_k":5,"service_tier":"auto"}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[]},{"type":"redacted_thinking","data":"x"}]},{"role":"user","content":"b"}],"tools":[{"type":"web_search_20250305","name":"web_search"}]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"},"citations":{"enabled":true}},{"type":"document","source":{"type":"url","url":"https://example.com/a.pdf"}}]},{"role":"assistant","content":"I beg"}]}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"a\ud83d\ude00b\u0000"},{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"x"}]},{"type":"refusal","refusal":"no"}],"reasoning_details":[{"type":"reasoning.text","text":"y"}]},{"role":"user","content":"c"}]}"#,
];

const BODIES: [&str; 23] = [
    r#"{"id":"resp_1","object":"response","created_at":1,"model":"m","status":"completed","output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}],"encrypted_content":"x"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello","annotations":[]},{"type":"refusal","refusal":"no"}]},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"custom_tool_call","call_id":"b","name":"g","input":"x"},{"type":"web_search_call","id":"w"}],"usage":{"input_tokens":1,"output_tokens":2,"input_tokens_details":{"cached_tokens":0}}}"#,
    r#"{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop","logprobs":null}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#,
    r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":{"x":1}}}]},"finish_reason":"tool_calls"}]}"#,
    r#"{"choices":[{"index":1,"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]},{"type":"text","text":"b"}],"reasoning_details":[{"type":"reasoning.text","text":"c"}]},"finish_reason":"length"},{"index":0,"message":{"refusal":"no"},"finish_reason":"content_filter"}]}"#,
    r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"a","signature":"s"},{"type":"text","text":"Hello","citations":[{"type":"char_location"}]},{"type":"tool_use","id":"t","name":"f","input":{"a":1}},{"type":"server_tool_use","id":"s","name":"web_search","input":{}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":0}}"#,
    r#"{"error":{"message":"Rate limit reached for requests. Please try again in 20s.","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#,
    r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#,
    r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
    r#"{"error":{"code":"content_filter","message":"The response was filtered","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"hate":{"filtered":true}}}}}"#,
    r#"[{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.07s"}]}}]"#,
    r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"x\"}}","provider_name":"p"}},"user_id":"u"}"#,
    r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}"#,
    r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1: This model does not support assistant message prefill. The conversation must end with a user message."}}"#,
    r#"{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted","input":1}]}"#,
    r#"{"detail":"Not Found"}"#,
    r#"{"message":"Invalid API key","code":401}"#,
    r#"{"error":"model 'x' not found, try pulling it first"}"#,
    r#"{"object":"error","message":"The model does not exist.","type":"NotFoundError","param":null,"code":404}"#,
    r#"{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#,
    r#"{"errors":[{"message":"x","code":7003}],"success":false}"#,
    "<html><head><title>502 Bad Gateway</title></head><body></body></html>",
    "upstream connect error or disconnect/reset before headers",
    "",
];
