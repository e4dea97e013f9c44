//! What commands that measure have in common: a bar while they work, lines and files when they are done.

use super::Failed;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

/// Writes a file of results.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failed> {
    std::fs::write(path, text).map_err(|error| Failed::Setup(format!("cannot write {}: {error}", path.display())))
}

/// A line for whoever ran the command.
pub(super) fn say(text: &str) -> Result<(), Failed> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

/// A bar on a terminal; in a pipe, none.
pub(super) fn progress(steps: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    }
    let bar = ProgressBar::new(steps as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len}  {elapsed} of about {duration}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
