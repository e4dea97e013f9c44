//! JSON: written straight into the bytes that leave, and fields found by their path.

use bytes::{BufMut, BytesMut};
use serde_json::{Map, Value};

/// A text, in quotes and escaped.
pub(super) fn string(text: &str, out: &mut BytesMut) {
    // Writing to memory cannot fail, and every text has a JSON form.
    let _ = serde_json::to_writer(out.writer(), text);
}

/// Any value.
pub(super) fn value(value: &Value, out: &mut BytesMut) {
    let _ = serde_json::to_writer(out.writer(), value);
}

/// A member of an object, without the comma.
pub(super) fn member(name: &str, member: &Value, out: &mut BytesMut) {
    string(name, out);
    out.put_u8(b':');
    value(member, out);
}

/// Whether `object` holds the field at `path`: a name, or two with a dot between them.
pub(super) fn holds(object: &Value, path: &str) -> bool {
    match path.split_once('.') {
        Some((outer, inner)) => object.get(outer).and_then(|object| object.get(inner)).is_some(),
        None => object.get(path).is_some(),
    }
}

/// Takes the field at `path` out of `object`; whether there was one.
pub(super) fn remove(object: &mut Map<String, Value>, path: &str) -> bool {
    match path.split_once('.') {
        Some((outer, inner)) => {
            let object = object.get_mut(outer).and_then(Value::as_object_mut);
            object.is_some_and(|object| object.shift_remove(inner).is_some())
        }
        None => object.shift_remove(path).is_some(),
    }
}
