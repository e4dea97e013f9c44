//! Keywords that say something of the value itself.

use super::equality::{compare, integer, is_multiple};
use super::{Answer, Check, Said};
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;

impl<'a> Check<'a> {
    pub(super) fn assertion(
        &mut self,
        name: &str,
        operand: &'a Value,
        fields: &'a Map<String, Value>,
        value: &Value,
    ) -> Said {
        match (name, value) {
            ("type", _) => self.typed(operand, value),
            ("const", _) => Ok(Answer::of(self.equal(operand, value)?)),
            ("enum", _) => {
                let Value::Array(allowed) = operand else { return Ok(self.unknown("an `enum` is no array")) };
                for one in allowed {
                    if self.equal(one, value)? {
                        return Ok(Answer::Yes);
                    }
                }
                Ok(Answer::No)
            }
            ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf", Value::Number(number)) => {
                Ok(self.number(name, operand, fields, number))
            }
            ("minLength" | "maxLength", Value::String(text)) => {
                self.spend(text.len() / 64)?;
                Ok(self.sized(name, operand, text.chars().count()))
            }
            ("pattern", Value::String(text)) => match operand.as_str() {
                Some(pattern) => self.matches(pattern, text),
                None => Ok(self.unknown("a `pattern` is no string")),
            },
            ("minItems" | "maxItems", Value::Array(items)) => Ok(self.sized(name, operand, items.len())),
            ("uniqueItems", Value::Array(items)) if operand == &Value::Bool(true) => {
                Ok(Answer::of(self.distinct(items)?))
            }
            ("minProperties" | "maxProperties", Value::Object(members)) => Ok(self.sized(name, operand, members.len())),
            // Drafts up to 4 write `required: true` in the property.
            ("required", Value::Object(members)) if operand.is_array() => self.has_all(operand, members),
            ("dependentRequired", Value::Object(members)) => {
                let Value::Object(needs) = operand else {
                    return Ok(self.unknown("a `dependentRequired` is no object"));
                };
                let mut all = Answer::Yes;
                for (name, needed) in needs {
                    self.spend(1)?;
                    if members.contains_key(name) {
                        all = all.and(self.has_all(needed, members)?);
                    }
                }
                Ok(all)
            }
            _ => Ok(Answer::Yes),
        }
    }

    pub(super) fn has_all(&mut self, needed: &Value, members: &Map<String, Value>) -> Said {
        let Value::Array(needed) = needed else { return Ok(self.unknown("what is required is no array")) };
        for name in needed {
            self.spend(1)?;
            match name.as_str() {
                Some(name) if members.contains_key(name) => {}
                Some(_) => return Ok(Answer::No),
                None => return Ok(self.unknown("a required name is no string")),
            }
        }
        Ok(Answer::Yes)
    }

    pub(super) fn matches(&mut self, pattern: &'a str, text: &str) -> Said {
        if !self.patterns.knows(pattern) {
            self.spend(BUILD)?;
        }
        let Some(built) = self.patterns.get(pattern) else {
            return Ok(self.unknown("a pattern is too large, or cannot be matched in linear time"));
        };
        self.spend(built.cost(text.len()))?;
        Ok(Answer::of(built.is_match(text)))
    }

    fn typed(&mut self, operand: &Value, value: &Value) -> Said {
        let is = |name: &str| match (name, value) {
            ("null", Value::Null)
            | ("boolean", Value::Bool(_))
            | ("number", Value::Number(_))
            | ("string", Value::String(_))
            | ("array", Value::Array(_))
            | ("object", Value::Object(_)) => true,
            ("integer", Value::Number(n)) => n.is_i64() || n.is_u64() || n.as_f64().is_some_and(|n| n.fract() == 0.0),
            _ => false,
        };
        match operand {
            Value::String(name) => Ok(Answer::of(is(name))),
            Value::Array(names) => {
                self.spend(names.len())?;
                Ok(Answer::of(names.iter().filter_map(Value::as_str).any(is)))
            }
            _ => Ok(self.unknown("a `type` is neither a string nor an array")),
        }
    }

    fn number(&mut self, name: &str, operand: &Value, fields: &Map<String, Value>, number: &Number) -> Answer {
        let Value::Number(bound) = operand else {
            // In draft 4 `exclusiveMinimum` is a flag beside `minimum`.
            return if operand.is_boolean() { Answer::Yes } else { self.unknown("a bound is no number") };
        };
        if name == "multipleOf" {
            return is_multiple(number, bound)
                .map_or_else(|| self.unknown("a `multipleOf` is not above zero"), Answer::of);
        }
        let Some(order) = compare(number, bound) else { return self.unknown("a number cannot be compared") };
        let flagged = |flag: &str| fields.get(flag) == Some(&Value::Bool(true));
        Answer::of(match name {
            "minimum" if flagged("exclusiveMinimum") => order == Ordering::Greater,
            "maximum" if flagged("exclusiveMaximum") => order == Ordering::Less,
            "minimum" => order != Ordering::Less,
            "maximum" => order != Ordering::Greater,
            "exclusiveMinimum" => order == Ordering::Greater,
            _ => order == Ordering::Less,
        })
    }

    pub(super) fn sized(&mut self, name: &str, operand: &Value, size: usize) -> Answer {
        let bound = match operand {
            Value::Number(bound) => integer(bound),
            _ => None,
        };
        let Some(bound) = bound else { return self.unknown("a size is no whole number") };
        let size = size as i128;
        Answer::of(if name.starts_with("min") { bound <= size } else { size <= bound })
    }
}

/// What it costs to build a regular expression, in steps.
const BUILD: usize = 10_000;
