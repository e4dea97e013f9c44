//! Keywords that apply other schemas: to the value, or to what it holds.

use super::{Answer, Check, Said, Spent};
use serde_json::{Map, Value};

impl<'a> Check<'a> {
    pub(super) fn applicator(
        &mut self,
        name: &str,
        operand: &'a Value,
        fields: &'a Map<String, Value>,
        value: &Value,
    ) -> Said {
        match (name, value) {
            ("allOf", _) => self.all_of(operand, value),
            ("anyOf", _) => self.any_of(operand, value),
            ("oneOf", _) => self.one_of(operand, value),
            ("not", _) => Ok(self.apply(operand, value)?.not()),
            ("if", _) => self.conditional(operand, fields, value),
            ("properties", Value::Object(members)) => self.properties(operand, members),
            ("patternProperties", Value::Object(members)) => self.pattern_properties(operand, members),
            ("additionalProperties", Value::Object(members)) => self.additional_properties(operand, fields, members),
            ("unevaluatedProperties", Value::Object(members)) => {
                if fields.keys().any(|key| IN_PLACE.contains(&key.as_str())) {
                    return Ok(self.unknown("`unevaluatedProperties` beside other applicators is not checked"));
                }
                if fields.contains_key("additionalProperties") {
                    return Ok(Answer::Yes);
                }
                self.additional_properties(operand, fields, members)
            }
            ("propertyNames", Value::Object(members)) => {
                let mut all = Answer::Yes;
                for name in members.keys() {
                    self.spend(1 + name.len() / 64)?;
                    all = all.and(self.apply(operand, &Value::String(name.clone()))?);
                }
                Ok(all)
            }
            ("dependentSchemas" | "dependencies", Value::Object(members)) => self.dependencies(operand, members, value),
            ("prefixItems", Value::Array(items)) => self.prefix(operand, items),
            ("items", Value::Array(items)) => self.items(operand, fields, items),
            ("additionalItems", Value::Array(items)) => match fields.get("items") {
                Some(Value::Array(first)) => self.each(operand, items.get(first.len()..).unwrap_or_default()),
                _ => Ok(Answer::Yes),
            },
            ("unevaluatedItems", Value::Array(_)) => Ok(self.unknown("`unevaluatedItems` is not checked")),
            ("contains", Value::Array(items)) => self.contains(operand, fields, items),
            _ => Ok(Answer::Yes),
        }
    }

    fn list(&mut self, operand: &'a Value) -> Result<&'a [Value], Spent> {
        match operand {
            Value::Array(list) => Ok(list),
            // A schema that is none decides nothing.
            _ => Err(Spent("a list of schemas is no array")),
        }
    }

    fn all_of(&mut self, operand: &'a Value, value: &Value) -> Said {
        let mut all = Answer::Yes;
        for schema in self.list(operand)? {
            all = all.and(self.apply(schema, value)?);
            if all == Answer::No {
                break;
            }
        }
        Ok(all)
    }

    fn any_of(&mut self, operand: &'a Value, value: &Value) -> Said {
        let mut none = Answer::Yes;
        for schema in self.list(operand)? {
            none = none.and(self.apply(schema, value)?.not());
            if none == Answer::No {
                break;
            }
        }
        Ok(none.not())
    }

    fn one_of(&mut self, operand: &'a Value, value: &Value) -> Said {
        let (mut fitting, mut unknown) = (0, 0);
        for schema in self.list(operand)? {
            match self.apply(schema, value)? {
                Answer::Yes => fitting += 1,
                Answer::Unknown => unknown += 1,
                Answer::No => {}
            }
            if fitting > 1 {
                return Ok(Answer::No);
            }
        }
        Ok(if unknown > 0 { Answer::Unknown } else { Answer::of(fitting == 1) })
    }

    fn conditional(&mut self, condition: &'a Value, fields: &'a Map<String, Value>, value: &Value) -> Said {
        let (then, other) = (fields.get("then"), fields.get("else"));
        if then.is_none() && other.is_none() {
            return Ok(Answer::Yes);
        }
        let branch = match self.apply(condition, value)? {
            Answer::Yes => then,
            Answer::No => other,
            Answer::Unknown => return Ok(Answer::Unknown),
        };
        branch.map_or(Ok(Answer::Yes), |schema| self.apply(schema, value))
    }

    // --- objects ---

    fn properties(&mut self, operand: &'a Value, members: &Map<String, Value>) -> Said {
        let Value::Object(schemas) = operand else { return Ok(self.unknown("`properties` is no object")) };
        let mut all = Answer::Yes;
        for (name, member) in members {
            self.spend(1)?;
            if let Some(schema) = schemas.get(name) {
                all = all.and(self.apply(schema, member)?);
                if all == Answer::No {
                    break;
                }
            }
        }
        Ok(all)
    }

    fn pattern_properties(&mut self, operand: &'a Value, members: &Map<String, Value>) -> Said {
        let Value::Object(schemas) = operand else { return Ok(self.unknown("`patternProperties` is no object")) };
        let mut all = Answer::Yes;
        for (pattern, schema) in schemas {
            for (name, member) in members {
                self.spend(1)?;
                all = all.and(match self.matches(pattern, name)? {
                    Answer::Yes => self.apply(schema, member)?,
                    Answer::No => Answer::Yes,
                    Answer::Unknown => Answer::Unknown,
                });
                if all == Answer::No {
                    return Ok(all);
                }
            }
        }
        Ok(all)
    }

    /// For every member that neither `properties` nor `patternProperties` knows.
    fn additional_properties(
        &mut self,
        operand: &'a Value,
        fields: &'a Map<String, Value>,
        members: &Map<String, Value>,
    ) -> Said {
        let known = fields.get("properties").and_then(Value::as_object);
        let patterns = fields.get("patternProperties").and_then(Value::as_object);
        let mut all = Answer::Yes;
        for (name, member) in members {
            self.spend(1)?;
            if known.is_some_and(|known| known.contains_key(name)) {
                continue;
            }
            let mut matched = Answer::No;
            for pattern in patterns.into_iter().flat_map(Map::keys) {
                matched = matched.not().and(self.matches(pattern, name)?.not()).not();
            }
            all = all.and(match matched {
                Answer::Yes => Answer::Yes,
                Answer::No => self.apply(operand, member)?,
                Answer::Unknown => Answer::Unknown,
            });
            if all == Answer::No {
                break;
            }
        }
        Ok(all)
    }

    fn dependencies(&mut self, operand: &'a Value, members: &Map<String, Value>, value: &Value) -> Said {
        let Value::Object(needs) = operand else { return Ok(self.unknown("dependencies are no object")) };
        let mut all = Answer::Yes;
        for (name, need) in needs {
            self.spend(1)?;
            if members.contains_key(name) {
                all = all.and(match need {
                    Value::Array(_) => self.has_all(need, members)?,
                    schema => self.apply(schema, value)?,
                });
            }
        }
        Ok(all)
    }

    // --- arrays ---

    fn items(&mut self, operand: &'a Value, fields: &'a Map<String, Value>, items: &[Value]) -> Said {
        if operand.is_array() {
            // Drafts up to 2019-09 write `prefixItems` so.
            return self.prefix(operand, items);
        }
        let before = fields.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
        self.each(operand, items.get(before..).unwrap_or_default())
    }

    fn prefix(&mut self, operand: &'a Value, items: &[Value]) -> Said {
        let mut all = Answer::Yes;
        for (schema, item) in self.list(operand)?.iter().zip(items) {
            all = all.and(self.apply(schema, item)?);
            if all == Answer::No {
                break;
            }
        }
        Ok(all)
    }

    fn each(&mut self, schema: &'a Value, items: &[Value]) -> Said {
        let mut all = Answer::Yes;
        for item in items {
            all = all.and(self.apply(schema, item)?);
            if all == Answer::No {
                break;
            }
        }
        Ok(all)
    }

    fn contains(&mut self, schema: &'a Value, fields: &'a Map<String, Value>, items: &[Value]) -> Said {
        let (mut found, mut unknown) = (0, 0);
        for item in items {
            match self.apply(schema, item)? {
                Answer::Yes => found += 1,
                Answer::Unknown => unknown += 1,
                Answer::No => {}
            }
        }
        let (least, most) = (fields.get("minContains"), fields.get("maxContains"));
        if unknown > 0 && (found == 0 || least.is_some() || most.is_some()) {
            return Ok(Answer::Unknown);
        }
        let enough = match least {
            Some(least) => self.sized("minContains", least, found),
            None => Answer::of(found > 0),
        };
        Ok(enough.and(most.map_or(Answer::Yes, |n| self.sized("maxContains", n, found))))
    }
}

/// Applicators whose schemas evaluate members of the same object.
const IN_PLACE: [&str; 11] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "$dynamicRef", "dependentSchemas", "dependencies"];
