//! The log: lines on standard error, filtered by `SEGUE_LOG`, as text or, with `SEGUE_LOG_FORMAT=json`, as JSON.

use super::outlet::Format;
use super::paint::Paint;
use super::{Failed, outlet};
use crate::words::escape::{json_line, plain};
use std::io::{self, Write};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::debug_fn;

/// A writer of lines of JSON that leaves nothing hidden in them.
struct Lines<W>(W);

/// Starts the log. What is not said in `SEGUE_LOG` is filtered by `default`.
///
/// # Errors
/// Where a variable has a value that means nothing.
pub(super) fn start(default: &str) -> Result<Format, Failed> {
    let format = format(variable("SEGUE_LOG_FORMAT").as_deref())?;
    let filter = match variable("SEGUE_LOG") {
        None => EnvFilter::new(default),
        Some(text) => EnvFilter::try_new(&text).map_err(|error| {
            Failed::Setup(format!(
                "SEGUE_LOG: `{text}` is no filter: {error}; write for example `info` or `segue=debug`"
            ))
        })?,
    };
    let lines = tracing_subscriber::fmt().with_env_filter(filter);
    let outlet =
        outlet::stderr(format).map_err(|error| Failed::Setup(format!("the log cannot be started: {error}")))?;
    // An embedding program, or a test, may have its own log; then that stays.
    let _ = match format {
        Format::Text => {
            let lively = Paint::of_stderr().is_lively();
            lines.with_writer(move || outlet.clone()).with_ansi(lively).fmt_fields(fields()).try_init()
        }
        Format::Json => lines.json().flatten_event(true).with_writer(move || Lines(outlet.clone())).try_init(),
    };
    Ok(format)
}

// === impl Lines ===

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // A line comes whole, in one call.
        self.0.write_all(json_line(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

// === helpers ===

/// Writes fields, whoever wrote what is in them, so that they stay on their line and rule no terminal. This is the one
/// place where text for the log is escaped and cut.
fn fields() -> impl for<'w> FormatFields<'w> + Send + Sync + 'static {
    debug_fn(|writer, field, value| {
        let value = format!("{value:?}");
        match field.name() {
            "message" => write!(writer, "{}", plain(&value, LONGEST)),
            name @ "attempts" => write!(writer, "{name}={}", plain(&value, LONGEST)),
            name => write!(writer, "{name}={}", plain(&value, SHORT)),
        }
    })
    .delimited(" ")
}

fn format(given: Option<&str>) -> Result<Format, Failed> {
    match given {
        None | Some("text") => Ok(Format::Text),
        Some("json") => Ok(Format::Json),
        Some(other) => {
            Err(Failed::Setup(format!("SEGUE_LOG_FORMAT: `{other}` is no format; there are `text` and `json`")))
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// The most characters of a message, and of a turn's attempts, of which up to eight are named …
const LONGEST: usize = 4096;
/// … and of any other field.
const SHORT: usize = 200;

#[cfg(test)]
mod tests {
    use super::format;
    use crate::cli::outlet::Format;

    #[test]
    fn formats_are_read_and_unknown_ones_named() {
        assert!(matches!(format(None), Ok(Format::Text)));
        assert!(matches!(format(Some("json")), Ok(Format::Json)));
        assert!(format(Some("xml")).is_err());
    }
}
