//! The log: lines on standard error, filtered by `SEGUE_LOG`, as text or, with `SEGUE_LOG_FORMAT=json`, as JSON.

use super::Failed;
use super::paint::Paint;
use tracing_subscriber::EnvFilter;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// For people.
    Text,
    /// One JSON object a line, for machines; nothing else is written to standard error then.
    Json,
}

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
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // An embedding program, or a test, may have its own log; then that stays.
    let _ = match format {
        Format::Text => lines.with_ansi(Paint::of_stderr().is_lively()).try_init(),
        Format::Json => lines.json().flatten_event(true).try_init(),
    };
    Ok(format)
}

// === helpers ===

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

#[cfg(test)]
mod tests {
    use super::{Format, format};

    #[test]
    fn formats_are_read_and_unknown_ones_named() {
        assert!(matches!(format(None), Ok(Format::Text)));
        assert!(matches!(format(Some("json")), Ok(Format::Json)));
        assert!(format(Some("xml")).is_err());
    }
}
