//! Where a `$ref` points to: within its schema only, nothing is fetched.

use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;

/// What can be referred to by name.
pub(super) struct References<'a> {
    root: &'a Value,
    /// Schemas by `$id`, and by `#` and their `$anchor`; filled when first asked for.
    names: Option<HashMap<Cow<'a, str>, &'a Value>>,
}

// === impl References ===

impl<'a> References<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self { root, names: None }
    }

    /// The schema that `reference` means where `#` is `base`. Looking for names takes `steps`, down to 0.
    pub(super) fn find(&mut self, base: &'a Value, reference: &str, steps: &mut u64) -> Option<&'a Value> {
        if let Some(fragment) = reference.strip_prefix('#')
            && (fragment.is_empty() || fragment.starts_with('/'))
        {
            return pointed(base, fragment);
        }
        let root = self.root;
        let names = self.names.get_or_insert_with(|| names(root, steps));
        if let Some(schema) = names.get(reference) {
            return Some(schema);
        }
        let (resource, fragment) = reference.split_once('#')?;
        let resource = *names.get(resource)?;
        pointed(resource, fragment)
    }
}

// === helpers ===

fn pointed<'a>(base: &'a Value, fragment: &str) -> Option<&'a Value> {
    if fragment.is_empty() {
        return Some(base);
    }
    base.pointer(&decoded(fragment)?)
}

/// Percent signs of a URL's fragment, read.
fn decoded(fragment: &str) -> Option<Cow<'_, str>> {
    if !fragment.contains('%') {
        return Some(Cow::Borrowed(fragment));
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// Everything in `root` that has a name. The first of a name holds.
fn names<'a>(root: &'a Value, steps: &mut u64) -> HashMap<Cow<'a, str>, &'a Value> {
    let mut names = HashMap::new();
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        let Some(left) = steps.checked_sub(1) else { break };
        *steps = left;
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                let named = |key: &str| fields.get(key).and_then(Value::as_str);
                if let Some(id) = named("$id") {
                    names.entry(Cow::Borrowed(id)).or_insert(value);
                }
                if let Some(anchor) = named("$anchor") {
                    names.entry(Cow::Owned(format!("#{anchor}"))).or_insert(value);
                }
                open.extend(fields.values());
            }
            _ => {}
        }
    }
    names
}
