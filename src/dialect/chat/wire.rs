//! A chunk as it stands on the wire, read without copying and without prejudice: a field of another type than the
//! documented one counts as absent, an unknown one is kept as it is. Only JSON that is broken is an error.

use super::surrogates;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;

/// Fields that nobody here knows, in their order.
pub(super) type Rest<'a> = SmallVec<[(Cow<'a, str>, &'a RawValue); 2]>;

/// One `chat.completion.chunk`, or whatever else a provider put there.
#[derive(Debug, Default)]
pub(super) struct Chunk<'a> {
    pub(super) id: Text<'a>,
    pub(super) object: Text<'a>,
    pub(super) created: Whole,
    pub(super) model: Text<'a>,
    /// `None`: there was no such field.
    pub(super) choices: Option<SmallVec<[Choice<'a>; 1]>>,
    pub(super) usage: Option<&'a RawValue>,
    pub(super) error: Option<&'a RawValue>,
    pub(super) x_groq: Option<&'a RawValue>,
    pub(super) rest: Rest<'a>,
}

/// One element of `choices`.
#[derive(Debug, Default)]
pub(super) struct Choice<'a> {
    pub(super) index: Whole,
    pub(super) delta: Option<Delta<'a>>,
    pub(super) finish: Text<'a>,
    pub(super) logprobs: Option<&'a RawValue>,
    pub(super) error: Option<&'a RawValue>,
    pub(super) rest: Rest<'a>,
}

/// A delta: a set of independent fields, any number of which may be there.
#[derive(Debug, Default)]
pub(super) struct Delta<'a> {
    /// Whether there was a field `role`, whatever it said.
    pub(super) role: bool,
    pub(super) content: Content<'a>,
    pub(super) refusal: Text<'a>,
    pub(super) reasoning: Text<'a>,
    pub(super) reasoning_content: Text<'a>,
    pub(super) reasoning_details: Option<&'a RawValue>,
    pub(super) tool_calls: Option<&'a RawValue>,
    pub(super) function_call: Option<&'a RawValue>,
    pub(super) rest: Rest<'a>,
}

/// `content`: text, or Mistral's list of typed parts.
#[derive(Debug, Default)]
pub(super) enum Content<'a> {
    #[default]
    None,
    Text(Cow<'a, str>),
    Parts(Vec<Value>),
}

/// A string, or nothing.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(pub(super) Option<Cow<'a, str>>);

/// A number that is not negative, or nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Whole(pub(super) Option<u64>);

/// One element of `tool_calls`.
#[derive(Debug, Default)]
pub(super) struct Entry<'a> {
    pub(super) index: Whole,
    pub(super) id: Text<'a>,
    pub(super) kind: Text<'a>,
    pub(super) function: Option<Function<'a>>,
    pub(super) rest: Rest<'a>,
}

/// The function of a call, or a legacy `function_call`.
#[derive(Debug, Default)]
pub(super) struct Function<'a> {
    pub(super) name: Text<'a>,
    /// JSON in a string, as documented, or as an object.
    pub(super) arguments: Option<&'a RawValue>,
    pub(super) rest: Rest<'a>,
}

// === impl Text ===

impl Text<'_> {
    /// The text; empty where there is none.
    pub(super) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

// === impl Function ===

impl<'a> Function<'a> {
    /// The fragment of arguments; empty where there is none.
    pub(super) fn args(&self) -> Cow<'a, str> {
        let Some(raw) = self.arguments else { return Cow::Borrowed("") };
        match raw.get().as_bytes().first() {
            Some(b'"') => {
                serde_json::from_str::<Text<'a>>(raw.get()).ok().and_then(|t| t.0).unwrap_or(Cow::Borrowed(""))
            }
            Some(b'{' | b'[') => Cow::Borrowed(raw.get()),
            _ => Cow::Borrowed(""),
        }
    }
}

// === impl Deserialize ===

impl<'de> Deserialize<'de> for Chunk<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Chunk<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a chunk")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut chunk = Chunk::default();
                while let Some(Text(Some(key))) = map.next_key::<Text<'de>>()? {
                    match &*key {
                        "id" => chunk.id = map.next_value()?,
                        "object" => chunk.object = map.next_value()?,
                        "created" => chunk.created = map.next_value()?,
                        "model" => chunk.model = map.next_value()?,
                        "choices" => chunk.choices = Some(map.next_value::<List<Choice<'de>>>()?.0),
                        "usage" => chunk.usage = map.next_value()?,
                        "error" => chunk.error = map.next_value()?,
                        "x_groq" => chunk.x_groq = map.next_value()?,
                        _ => chunk.rest.push((key, map.next_value()?)),
                    }
                }
                Ok(chunk)
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

impl<'de> Deserialize<'de> for Choice<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Choice<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a choice")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut choice = Choice::default();
                while let Some(Text(Some(key))) = map.next_key::<Text<'de>>()? {
                    match &*key {
                        "index" => choice.index = map.next_value()?,
                        "delta" => choice.delta = map.next_value()?,
                        "finish_reason" => choice.finish = map.next_value()?,
                        "logprobs" => choice.logprobs = map.next_value()?,
                        "error" => choice.error = map.next_value()?,
                        _ => choice.rest.push((key, map.next_value()?)),
                    }
                }
                Ok(choice)
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

impl<'de> Deserialize<'de> for Delta<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Delta<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a delta")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut delta = Delta::default();
                while let Some(Text(Some(key))) = map.next_key::<Text<'de>>()? {
                    match &*key {
                        "role" => {
                            map.next_value::<IgnoredAny>()?;
                            delta.role = true;
                        }
                        "content" => delta.content = map.next_value()?,
                        "refusal" => delta.refusal = map.next_value()?,
                        "reasoning" => delta.reasoning = map.next_value()?,
                        "reasoning_content" => delta.reasoning_content = map.next_value()?,
                        "reasoning_details" => delta.reasoning_details = map.next_value()?,
                        "tool_calls" => delta.tool_calls = map.next_value()?,
                        "function_call" => delta.function_call = map.next_value()?,
                        _ => delta.rest.push((key, map.next_value()?)),
                    }
                }
                Ok(delta)
            }
            // PHP writes an empty object as an empty list.
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                drain(seq)?;
                Ok(Delta::default())
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl<'de> Deserialize<'de> for Entry<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Entry<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a tool call")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entry = Entry::default();
                while let Some(Text(Some(key))) = map.next_key::<Text<'de>>()? {
                    match &*key {
                        "index" => entry.index = map.next_value()?,
                        "id" => entry.id = map.next_value()?,
                        "type" => entry.kind = map.next_value()?,
                        "function" => entry.function = map.next_value()?,
                        _ => entry.rest.push((key, map.next_value()?)),
                    }
                }
                Ok(entry)
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

impl<'de> Deserialize<'de> for Function<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Function<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a function")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut function = Function::default();
                while let Some(Text(Some(key))) = map.next_key::<Text<'de>>()? {
                    match &*key {
                        "name" => function.name = map.next_value()?,
                        "arguments" => function.arguments = map.next_value()?,
                        _ => function.rest.push((key, map.next_value()?)),
                    }
                }
                Ok(function)
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// A list, or `null`, which is an empty one.
struct List<T>(SmallVec<[T; 1]>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = List<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut list = SmallVec::new();
                while let Some(item) = seq.next_element()? {
                    list.push(item);
                }
                Ok(List(list))
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(List(SmallVec::new()))
            }
        }
        deserializer.deserialize_any(Reader(std::marker::PhantomData))
    }
}

/// The methods of a visitor that takes what it does not want and gives nothing.
macro_rules! nothing_else {
    ($nothing:expr; $($method:ident: $type:ty),*) => {
        $(fn $method<E>(self, _: $type) -> Result<Self::Value, E> {
            Ok($nothing)
        })*
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($nothing)
        }
    };
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Some(Cow::Borrowed(text))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Some(Cow::Owned(text.to_owned()))))
            }
            // A finish reason may be a number, which is then an unknown word.
            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Text(Some(Cow::Owned(number.to_string()))))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                drain(seq)?;
                Ok(Text(None))
            }
            // A number keeps its digits on the way to a `Value`, and comes as a map of one entry.
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut text = None;
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    if key == NUMBER {
                        text = Some(Cow::Owned(map.next_value::<String>()?));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Text(text))
            }
            nothing_else!(Text(None); visit_bool: bool, visit_i64: i64, visit_f64: f64);
        }
        deserializer.deserialize_any(Reader)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Content<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("content")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = seq.next_element()? {
                    parts.push(part);
                }
                Ok(Content::Parts(parts))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Content::None)
            }
            nothing_else!(Content::None; visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);
        }
        deserializer.deserialize_any(Reader)
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?.get();
        let digits = raw.trim_matches('"');
        // Saturating: what is negative or no number is 0.
        let whole = || Some(digits.parse::<f64>().ok().filter(|_| digits == raw)? as u64);
        Ok(Self(digits.parse().ok().or_else(whole)))
    }
}

// === helpers ===

pub(super) fn value(raw: &RawValue, marked: bool) -> Value {
    let mut value = serde_json::from_str(raw.get()).unwrap_or_default();
    if marked {
        clean(&mut value);
    }
    value
}

pub(super) fn clean(value: &mut Value) {
    match value {
        Value::String(text) => *text = surrogates::clean(text),
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a value says nothing.
pub(super) fn is_void(raw: &RawValue) -> bool {
    matches!(raw.get(), "null" | "{}" | "[]")
}

fn drain<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

/// The name under which serde_json hands a number over that is to keep its digits.
const NUMBER: &str = "$serde_json::private::Number";
