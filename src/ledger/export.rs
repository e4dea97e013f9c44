//! A ledger's rows for other programs.

use super::reader::Reader;
use rusqlite::types::ValueRef;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// What is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// One row per turn.
    Turns,
    /// One row per attempt.
    Attempts,
    /// One row per change of a circuit.
    Circuits,
}

/// How.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// With a line of names; as RFC 4180 has it.
    Csv,
    /// One JSON object a line.
    JsonLines,
}

// === impl Reader ===

impl Reader {
    /// Writes the rows of what began from `from` to `to`, in seconds of Unix time, in their order; gives how many.
    ///
    /// # Errors
    /// What SQLite says, or who is written to.
    pub fn export(
        &self,
        what: What,
        format: Format,
        (from, to): (f64, f64),
        out: &mut dyn Write,
    ) -> Result<u64, String> {
        let wrong = |error: rusqlite::Error| error.to_string();
        let ask = match what {
            What::Turns => "SELECT * FROM turns WHERE started >= ?1 AND started < ?2 ORDER BY started",
            What::Attempts => {
                "SELECT t.started, a.* FROM turns t JOIN attempts a ON a.turn = t.id \
                 WHERE t.started >= ?1 AND t.started < ?2 ORDER BY t.started, a.number"
            }
            What::Circuits => "SELECT * FROM circuits WHERE at >= ?1 AND at < ?2 ORDER BY at",
        };
        let mut statement = self.db().prepare(ask).map_err(wrong)?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query([from, to]).map_err(wrong)?;
        let mut count = 0;
        let written = |done: io::Result<()>| done.map_err(|error| error.to_string());
        if format == Format::Csv {
            written(writeln!(out, "{}", names.join(",")))?;
        }
        while let Some(row) = rows.next().map_err(wrong)? {
            let values: rusqlite::Result<Vec<Value>> = (0..names.len()).map(|at| row.get_ref(at).map(value)).collect();
            let values = values.map_err(wrong)?;
            match format {
                Format::Csv => {
                    let cells: Vec<String> = values.iter().map(cell).collect();
                    written(writeln!(out, "{}", cells.join(",")))?;
                }
                Format::JsonLines => {
                    let object: Map<String, Value> = names.iter().cloned().zip(values).collect();
                    written(writeln!(out, "{}", Value::Object(object)))?;
                }
            }
            count += 1;
        }
        Ok(count)
    }
}

// === helpers ===

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(whole) => whole.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) | ValueRef::Blob(text) => String::from_utf8_lossy(text).into_owned().into(),
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => {
            // What a spreadsheet would take for a formula is text: clients choose the names of conversations.
            let formula = if text.starts_with(['=', '+', '-', '@', '\t']) { "'" } else { "" };
            if text.contains([',', '"', '\n', '\r']) || !formula.is_empty() {
                format!("\"{formula}{}\"", text.replace('"', "\"\""))
            } else {
                text.clone()
            }
        }
        other => other.to_string(),
    }
}
