//! JSON Schema, checked within a budget.
//!
//! A schema comes from a client and an answer from a model; both are foreign. An evaluator that takes as long as it takes
//! is a way to stop a whole gateway: references that double at each step, chains of them that end a stack, regular
//! expressions that go back and forth. This one interprets the schema as it stands, so nothing is compiled but regular
//! expressions (which are matched in linear time). It counts its steps and its levels, and where it has had enough, or
//! meets a keyword that it does not know how to decide, it says so: [`Verdict::Undecided`] is no blame.
//!
//! It knows the keywords of the drafts 4 to 2020-12 save `$dynamicRef`, `$recursiveRef`, what is `unevaluated…` beside
//! other applicators, and documents elsewhere. `format` is an annotation, as it is by default in the newest draft.

mod applicators;
mod assertions;
mod equality;
mod pattern;
mod references;

use pattern::Patterns;
use references::References;
use serde_json::{Map, Value};

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The value meets the schema.
    Fits,
    /// It does not.
    Differs,
    /// That cannot be said; why.
    Undecided(&'static str),
}

/// How much a check may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Schemas applied, keywords looked at, values compared, and so on. A million take some tens of milliseconds.
    pub steps: u64,
    /// Schemas within schemas, references included. A level takes about 2 KiB of stack.
    pub depth: u32,
}

/// What one keyword, or one schema, says of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    Unknown,
}

/// The budget is spent.
#[derive(Debug)]
struct Spent(&'static str);

type Said = Result<Answer, Spent>;

/// One check under way.
struct Check<'a> {
    /// What `#` means: the schema, or the part of it with an id of its own.
    base: &'a Value,
    references: References<'a>,
    patterns: Patterns<'a>,
    /// Drafts up to 7: whatever stands beside `$ref` does not count.
    old: bool,
    left: Budget,
    /// Why something could not be said.
    unknown: Option<&'static str>,
}

/// Says whether `value` meets `schema`, for at most `budget`.
pub fn check(schema: &Value, value: &Value, budget: Budget) -> Verdict {
    let draft = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let mut check = Check {
        base: schema,
        references: References::new(schema),
        patterns: Patterns::default(),
        old: ["draft-03", "draft-04", "draft-06", "draft-07"].iter().any(|old| draft.contains(old)),
        left: budget,
        unknown: None,
    };
    match check.apply(schema, value) {
        Ok(Answer::Yes) => Verdict::Fits,
        Ok(Answer::No) => Verdict::Differs,
        Ok(Answer::Unknown) => Verdict::Undecided(check.unknown.unwrap_or("the schema is not understood")),
        Err(Spent(why)) => Verdict::Undecided(why),
    }
}

// === impl Budget ===

impl Default for Budget {
    fn default() -> Self {
        Self { steps: 1_000_000, depth: 400 }
    }
}

// === impl Answer ===

impl Answer {
    fn of(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }

    /// Both are so.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Yes, Self::Yes) => Self::Yes,
        }
    }

    fn not(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Unknown => Self::Unknown,
        }
    }
}

// === impl Check ===

impl<'a> Check<'a> {
    /// Takes `steps` from the budget.
    fn spend(&mut self, steps: usize) -> Result<(), Spent> {
        match self.left.steps.checked_sub(steps as u64) {
            Some(left) => self.left.steps = left,
            None => return Err(Spent("the check takes too many steps")),
        }
        Ok(())
    }

    fn unknown(&mut self, why: &'static str) -> Answer {
        self.unknown.get_or_insert(why);
        Answer::Unknown
    }

    /// What `schema` says of `value`.
    fn apply(&mut self, schema: &'a Value, value: &Value) -> Said {
        self.spend(1)?;
        let fields = match schema {
            Value::Bool(all) => return Ok(Answer::of(*all)),
            Value::Object(fields) => fields,
            _ => return Ok(self.unknown("a schema is neither an object nor a boolean")),
        };
        match self.left.depth.checked_sub(1) {
            Some(left) => self.left.depth = left,
            None => return Err(Spent("the schema is nested too deeply")),
        }
        let outer = self.base;
        if fields.get("$id").and_then(Value::as_str).is_some_and(|id| !id.starts_with('#')) {
            self.base = schema;
        }
        let said = self.keywords(fields, value);
        self.base = outer;
        self.left.depth += 1;
        said
    }

    fn keywords(&mut self, fields: &'a Map<String, Value>, value: &Value) -> Said {
        if let Some(reference) = fields.get("$ref").filter(|_| self.old) {
            return self.refer(reference, value);
        }
        let mut all = Answer::Yes;
        for (name, operand) in fields {
            self.spend(1)?;
            all = all.and(self.keyword(name, operand, fields, value)?);
            if all == Answer::No {
                break;
            }
        }
        Ok(all)
    }

    fn keyword(&mut self, name: &str, operand: &'a Value, fields: &'a Map<String, Value>, value: &Value) -> Said {
        match name {
            "$ref" => self.refer(operand, value),
            "$dynamicRef" | "$recursiveRef" => Ok(self.unknown("references that depend on the path are not followed")),
            "type" | "enum" | "const" | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum"
            | "multipleOf" | "minLength" | "maxLength" | "pattern" | "minItems" | "maxItems" | "uniqueItems"
            | "minProperties" | "maxProperties" | "required" | "dependentRequired" => {
                self.assertion(name, operand, fields, value)
            }
            _ => self.applicator(name, operand, fields, value),
        }
    }

    fn refer(&mut self, reference: &'a Value, value: &Value) -> Said {
        let Some(reference) = reference.as_str() else { return Ok(self.unknown("a `$ref` is no string")) };
        self.spend(1 + reference.len() / 8)?;
        let found = self.references.find(self.base, reference, &mut self.left.steps);
        match found {
            Some(schema) => self.apply(schema, value),
            None if self.left.steps == 0 => Err(Spent("the check takes too many steps")),
            None => Ok(self.unknown("a `$ref` points to nothing in the schema")),
        }
    }
}

#[cfg(test)]
mod tests;
