//! The fields that a target does not know, read from its refusal: one or many, in quotes, lists or paths.

use super::Refused;
use crate::failure::Remedy;

/// Which fields a refusal is about, and where they are. `lower` is its message in lower case.
pub(super) fn fields(refused: &Refused<'_>, lower: &str) -> Option<Remedy> {
    let coded = CODES.contains(&refused.code);
    let names = names(refused, lower, coded);
    if names.is_empty() {
        return None;
    }
    let (mut top, mut inside) = (Vec::new(), Vec::new());
    // The place of a bare name may stand before it: `'messages.0' : property 'name' is unsupported`.
    let in_messages = lower.contains("'messages.") && lower.contains("property '");
    for name in names.into_iter().take(MOST) {
        let place = match place(&name) {
            Place::Top(field) if in_messages && !field.contains('.') => within(&field),
            place => place,
        };
        match place {
            Place::Reasoning => return Some(Remedy::StripReasoning),
            Place::Top(field) => push(&mut top, field),
            Place::Inside(field) => push(&mut inside, field),
            Place::Nowhere => {}
        }
    }
    if !top.is_empty() {
        let value = refused.code == "unsupported_value" || VALUES.iter().any(|words| lower.contains(words));
        let fixed = FIXED.iter().any(|words| lower.contains(words));
        return Some(Remedy::Drop { fields: top, lasting: !value || fixed });
    }
    (!inside.is_empty()).then_some(Remedy::DropInside(inside))
}

enum Place {
    Top(String),
    Inside(String),
    Reasoning,
    Nowhere,
}

/// Where the field of a path stands: `messages.1.assistant.reasoning_content`, `tools[0].function.strict`, `seed`.
fn place(path: &str) -> Place {
    let mut steps = path.split(['.', '[', ']']).filter(|s| !s.is_empty() && *s != "body" && !is_number(s));
    let Some(head) = steps.next() else { return Place::Nowhere };
    let rest: Vec<&str> = steps.collect();
    let last = rest.last().copied();
    let reasoning = |name: &str| REASONING.contains(&name);
    match (head, last) {
        ("messages" | "input" | "contents" | "system", Some(name)) if reasoning(name) => Place::Reasoning,
        ("messages" | "tools" | "functions" | "input" | "contents" | "system", Some(name)) => {
            match rest.contains(&CACHE) && name != CACHE {
                true => Place::Inside(format!("{CACHE}.{name}")),
                false => within(name),
            }
        }
        ("reasoning_content" | "reasoning_details", None) => Place::Reasoning,
        ("cache_control", None) => Place::Inside(head.to_owned()),
        _ => {
            let head = snake(head);
            if REQUIRED.contains(&head.as_str()) {
                return Place::Nowhere;
            }
            match last {
                Some(last) => Place::Top(format!("{head}.{}", snake(last))),
                None => Place::Top(head),
            }
        }
    }
}

/// A field of messages, parts, calls or tools, unless they consist of it.
fn within(name: &str) -> Place {
    if FIXTURES.contains(&name) { Place::Nowhere } else { Place::Inside(name.to_owned()) }
}

/// The names in the message, or else the one that the error gives as its parameter.
fn names(refused: &Refused<'_>, lower: &str, coded: bool) -> Vec<String> {
    let message = refused.message;
    let mut found: Vec<String> = validations(message).collect();
    // Lower-casing ASCII keeps positions.
    if found.is_empty() {
        for words in BEFORE {
            for (at, _) in lower.match_indices(words) {
                found.extend(message.get(at + words.len()..).map(forward).unwrap_or_default());
            }
        }
    }
    if found.is_empty() {
        found.extend(narrower(lower).map(str::to_owned));
    }
    if found.is_empty() {
        for words in BEHIND {
            for (at, _) in lower.match_indices(words) {
                found.extend(message.get(..at).map(backward).unwrap_or_default());
            }
        }
    }
    let named = refused.param.contains(['_', '.', '[']) || (coded && !refused.param.is_empty());
    let said = coded || !found.is_empty() || BEFORE.iter().chain(&BEHIND).any(|words| lower.contains(words));
    if named && said && refused.param != "validation_error" && found.len() < 2 {
        return vec![refused.param.to_owned()];
    }
    found.retain(|name| name.len() <= LONGEST);
    found
}

/// The sampling field of which this target takes fewer values than the API allows. A value that no target takes is the
/// client's mistake, and is told.
fn narrower(lower: &str) -> Option<&'static str> {
    let only = NARROW.iter().chain(&FIXED).any(|words| lower.contains(words));
    SAMPLING.iter().find(|field| only && lower.contains(*field)).copied()
}

/// The places in a validator's list of errors that was written out as text.
fn validations(message: &str) -> impl Iterator<Item = String> {
    let forbidden = |entry: &&str| {
        let lower = entry.to_ascii_lowercase();
        lower.contains("loc") && (lower.contains("extra_forbidden") || lower.contains("extra inputs"))
    };
    message.split('{').filter(forbidden).filter_map(|entry| {
        let entry = entry.get(entry.find("loc")? + 4..)?;
        let list = entry.get(entry.find(['(', '['])? + 1..)?;
        let list = list.get(..list.find([')', ']'])?)?;
        let steps = list.split(',').map(|step| step.trim_matches(|c: char| !is_name(c)));
        let path = steps.filter(|step| !step.is_empty() && *step != "body").collect::<Vec<_>>().join(".");
        (!path.is_empty()).then_some(path)
    })
}

/// The names at the start of a text: quoted or bare, one or a list.
fn forward(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = text;
    let mut quoted = None;
    while out.len() < MOST {
        let at = rest.find(is_start).unwrap_or(rest.len());
        let (gap, tail) = rest.split_at(at);
        if tail.is_empty() || (!out.is_empty() && !is_join(gap)) {
            break;
        }
        let end = tail.find(|c| !is_name(c)).unwrap_or(tail.len());
        let (word, next) = tail.split_at(end);
        rest = next;
        let in_quotes = gap.ends_with(QUOTES);
        if !in_quotes && FILLERS.contains(&word) && out.is_empty() {
            continue;
        }
        if !in_quotes && word == "and" {
            continue;
        }
        if *quoted.get_or_insert(in_quotes) != in_quotes || STOPS.contains(&word) || gap.contains(['.', '\n']) {
            break;
        }
        out.push(bare(word).to_owned());
    }
    out
}

/// The names at the end of a text. A bare word of a sentence is no field.
fn backward(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut rest = text;
    while out.len() < MOST {
        let end = rest.rfind(is_start).map_or(0, |at| at + 1);
        let gap = &rest[end..];
        if end == 0 || (!out.is_empty() && !is_join(gap)) || gap.contains(['\n', '.']) || gap.len() > 4 {
            break;
        }
        let start =
            rest[..end].rfind(|c| !is_name(c)).map_or(0, |at| at + rest[at..].chars().next().map_or(1, char::len_utf8));
        let start = start + rest[start..end].find(is_start).unwrap_or(0);
        let word = &rest[start..end];
        rest = &rest[..start];
        if word == "and" && !out.is_empty() {
            continue;
        }
        let quoted = rest.ends_with(QUOTES) && !gap.is_empty();
        if !quoted && !word.contains(['_', '.', '[']) {
            break;
        }
        out.push(bare(word).to_owned());
    }
    out.reverse();
    out
}

/// Whether what stands between two names joins them to a list.
fn is_join(gap: &str) -> bool {
    let bare = gap.trim_matches(|c: char| c.is_whitespace() || QUOTES.contains(&c));
    gap.len() <= 8 && (bare == "," || bare.is_empty() && gap.contains(' '))
}

fn push(list: &mut Vec<String>, name: String) {
    if !list.contains(&name) && name.len() <= LONGEST {
        list.push(name);
    }
}

fn is_number(step: &&str) -> bool {
    step.bytes().all(|b| b.is_ascii_digit())
}

/// A name without what ends its sentence or its list.
fn bare(word: &str) -> &str {
    let word = word.trim_end_matches('.');
    if word.contains('[') { word } else { word.trim_end_matches(']') }
}

fn is_start(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']')
}

/// `reasoningEffort` as `reasoning_effort`.
fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Codes of a field that is refused.
const CODES: [&str; 3] = ["unsupported_parameter", "unknown_parameter", "unsupported_value"];

/// What comes before the names, lower case.
const BEFORE: [&str; 17] = [
    "unsupported parameter",
    "unknown parameter",
    "unsupported value",
    "unrecognized request argument",
    "unrecognized parameter",
    "unrecognized key",
    "does not support parameter",
    "does not support the parameter",
    "parameters are not supported",
    "argument not supported on this model",
    "unexpected keyword argument",
    "unexpected parameter",
    "unexpected field",
    "unrecognized field",
    "unknown field",
    "unknown name",
    "unknown argument",
];

/// What comes behind the names, lower case.
const BEHIND: [&str; 15] = [
    "extra inputs are not permitted",
    "extra fields not permitted",
    "extra_forbidden",
    "is unsupported",
    "is not supported",
    "are not supported",
    "is not allowed",
    "is not permitted",
    "is deprecated",
    "was unexpected",
    "were unexpected",
    "is not available",
    "not supported with this model",
    "does not support",
    "cannot both be specified",
];

/// The value was refused, not the field.
const VALUES: [&str; 9] = [
    "unsupported value",
    "above maximum",
    "below minimum",
    "must be between",
    "out of range",
    "range: 0..1",
    "range of",
    "(0, 1",
    "[0, 1",
];
/// And yet no other is taken.
const FIXED: [&str; 4] = ["only the default", "only 1 is allowed", "only 1.0 is allowed", "only be set to 1"];
/// A range that is narrower than the API's.
const NARROW: [&str; 9] = [
    "range: 0..1",
    "between 0 and 1",
    "between 0.0 and 1.0",
    "[0, 1]",
    "[0,1]",
    "(0, 1]",
    "(0, 1)",
    "[0.0, 1.0]",
    "(0.0, 1.0",
];
/// Fields of which targets take different values.
const SAMPLING: [&str; 5] = ["temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty"];

/// Fields without which the answer would be another: these are never left out to please a target.
const REQUIRED: [&str; 17] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "response_format",
    "n",
    "stream",
    "stop",
    "audio",
    "modalities",
    "body",
    "input",
    "instructions",
    "system",
    "contents",
];

/// A mark with fields of its own, which targets know more or fewer of.
const CACHE: &str = "cache_control";

/// What a message, part, call or tool consists of.
const FIXTURES: [&str; 26] = [
    "role",
    "content",
    "type",
    "text",
    "tool_calls",
    "tool_call_id",
    "tool_use_id",
    "tool_use",
    "tool_result",
    "function",
    "function_call",
    "id",
    "arguments",
    "parameters",
    "input",
    "input_schema",
    "image_url",
    "input_audio",
    "image",
    "file",
    "url",
    "source",
    "data",
    "description",
    "assistant",
    "user",
];

/// Fields of a message that carry earlier reasoning.
const REASONING: [&str; 5] = ["reasoning", "reasoning_content", "reasoning_details", "reasoning_text", "thinking"];

/// Words between what is said and the names.
const FILLERS: [&str; 14] =
    ["s", "supplied", "provided", "name", "found", "in", "request", "the", "object", "for", "this", "model", "id", "a"];
/// Words that end a list of names.
const STOPS: [&str; 14] =
    ["expected", "for", "with", "is", "are", "not", "use", "please", "did", "only", "at", "got", "in", "on"];
const QUOTES: [char; 5] = ['\'', '"', '`', '“', '‘'];

/// So many fields are taken out of one refusal.
const MOST: usize = 32;
/// The longest name that is believed to be a field's.
const LONGEST: usize = 64;
