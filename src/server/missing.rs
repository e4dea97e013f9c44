//! What is said of a path that is not served: what the asker probably meant, and what to do.

use crate::dialect::{Reason, Refusal};

/// The refusal for `path`.
pub(super) fn refusal(path: &str) -> Refusal {
    let shown: String = path.chars().take(SHOWN).collect();
    Refusal::new(Reason::NotFound, "unknown_route", format!("there is nothing at {shown}; {}", remedy(path)))
}

fn remedy(path: &str) -> String {
    let path = path.trim_end_matches('/');
    if let Some(rest) = path.strip_prefix("/v1/v1/") {
        return format!(
            "the base URL has `/v1` once too often: ask for /v1/{rest} (the Anthropic SDKs add it themselves)"
        );
    }
    let bare = path.strip_prefix("/v1").unwrap_or(path);
    if let Some(route) = SERVED.iter().find(|route| **route == format!("/v1{path}")) {
        return format!("ask for {route}: the base URL of the OpenAI SDKs ends in `/v1`");
    }
    if let Some(route) = SERVED.iter().find(|route| path.len() > route.len() && path.ends_with(*route)) {
        return format!("ask for {route}: the base URL has a path too much");
    }
    match UNSERVED.iter().find(|(route, _)| bare == *route || bare.starts_with(&format!("{route}/"))) {
        Some((_, instead)) => (*instead).to_owned(),
        None => format!("this gateway serves {}", SERVED.join(", ")),
    }
}

/// The routes that clients ask for.
const SERVED: [&str; 5] =
    ["/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens", "/v1/responses", "/v1/models"];

/// Routes of these APIs that are not served, and what to do instead.
const UNSERVED: [(&str, &str); 11] = [
    (
        "/responses",
        "of the Responses API there are POST /v1/responses, and GET and DELETE /v1/responses/{id}; the rest is not served",
    ),
    ("/completions", "the old Completions API is not served; use /v1/chat/completions"),
    ("/embeddings", "embeddings are not served yet; ask a provider for them directly"),
    ("/turns", "turns cannot be resumed yet; ask again, with the text that was told as the last message"),
    ("/models", "one model cannot be asked about; GET /v1/models lists them"),
    ("/messages", "batches and other routes of Messages are not served; ask the provider for them directly"),
    ("/audio", "speech is not served; ask a provider for it directly"),
    ("/images", "images are not served; ask a provider for them directly"),
    ("/moderations", "moderations are not served; ask a provider for them directly"),
    ("/files", "files are not served; ask a provider for them directly"),
    ("/batches", "batches are not served; ask a provider for them directly"),
];

/// The most characters of a path that an error repeats.
const SHOWN: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_gets_its_remedy() {
        for (path, words) in [
            ("/chat/completions", "ask for /v1/chat/completions"),
            ("/v1/v1/messages", "once too often"),
            ("/openai/v1/chat/completions", "a path too much"),
            ("/responses", "ask for /v1/responses"),
            ("/v1/responses/resp_1/input_items", "GET and DELETE"),
            ("/v1/embeddings", "embeddings"),
            ("/v1/messages/batches", "batches"),
            ("/v1/models/normal", "lists them"),
            ("/completions", "the old Completions API"),
            ("/x", "this gateway serves /v1/chat/completions, "),
            ("/", "this gateway serves"),
        ] {
            let told = refusal(path).message;
            assert!(told.contains(words), "{path}: {told}");
        }
        assert!(refusal(&"/x".repeat(5000)).message.len() < 500);
    }
}
