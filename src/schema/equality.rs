//! When two JSON values are one: numbers by what they are worth, objects in any order.

use super::{Check, Spent};
use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;

impl Check<'_> {
    pub(super) fn equal(&mut self, a: &Value, b: &Value) -> Result<bool, Spent> {
        self.spend(1)?;
        Ok(match (a, b) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Number(a), Value::Number(b)) => compare(a, b) == Some(Ordering::Equal),
            (Value::String(a), Value::String(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                self.spend(a.len() / 64)?;
                a == b
            }
            (Value::Array(a), Value::Array(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (a, b) in a.iter().zip(b) {
                    if !self.equal(a, b)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Object(a), Value::Object(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (name, a) in a {
                    match b.get(name) {
                        Some(b) if self.equal(a, b)? => {}
                        _ => return Ok(false),
                    }
                }
                true
            }
            _ => false,
        })
    }

    /// Whether no two of `items` are equal.
    pub(super) fn distinct(&mut self, items: &[Value]) -> Result<bool, Spent> {
        let mut seen = BTreeSet::new();
        for item in items {
            let mut text = String::new();
            self.canonical(item, &mut text)?;
            // To find one among many costs some comparisons.
            self.spend(1 + text.len() / 8)?;
            if !seen.insert(text) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes `value` so that equal ones are written alike.
    fn canonical(&mut self, value: &Value, out: &mut String) -> Result<(), Spent> {
        self.spend(1)?;
        match value {
            Value::Number(n) => match integer(n) {
                Some(n) => out.push_str(&n.to_string()),
                None => out.push_str(&n.to_string()),
            },
            Value::Array(items) => {
                out.push('[');
                for item in items {
                    self.canonical(item, out)?;
                    out.push(',');
                }
                out.push(']');
            }
            Value::Object(fields) => {
                let mut names: Vec<&String> = fields.keys().collect();
                names.sort_unstable();
                out.push('{');
                for name in names {
                    self.spend(1 + name.len() / 64)?;
                    out.push_str(&format!("{name:?}:"));
                    self.canonical(&fields[name], out)?;
                    out.push(',');
                }
                out.push('}');
            }
            Value::String(text) => {
                self.spend(text.len() / 16)?;
                out.push_str(&format!("{text:?}"));
            }
            Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
        }
        Ok(())
    }
}

// === helpers ===

/// Which of two numbers is larger.
pub(super) fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// A number without a fraction, however it is written.
pub(super) fn integer(number: &Number) -> Option<i128> {
    if let Some(n) = number.as_i64() {
        return Some(n.into());
    }
    if let Some(n) = number.as_u64() {
        return Some(n.into());
    }
    let float = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < EXACT)?;
    Some(float as i128)
}

/// Whether `number` is a whole number of times `unit`; `None` for a unit that is none.
pub(super) fn is_multiple(number: &Number, unit: &Number) -> Option<bool> {
    if let (Some(number), Some(unit)) = (integer(number), integer(unit)) {
        return number.checked_rem(unit).map(|rest| rest == 0);
    }
    let times = number.as_f64()? / unit.as_f64().filter(|unit| *unit > 0.0)?;
    Some((times - times.round()).abs() <= 1e-9 * times.abs().max(1.0))
}

/// Larger numbers than any that are met; up to here they can be turned into integers.
const EXACT: f64 = 1e37;
