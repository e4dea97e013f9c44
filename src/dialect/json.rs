//! Writes JSON straight into the bytes that leave.

use bytes::{BufMut, BytesMut};
use serde_json::Value;

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
