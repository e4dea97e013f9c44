//! The file of scores: where it is, and how it is read and written.

use super::environment::Environment;
use crate::config::scores::{FILE, Scores};
use crate::config::{Location, Places as _, Problem, Resolver as _};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Where it is: where it was `given`, else beside the configuration, else in the current directory.
pub(super) fn place(given: Option<&str>, location: &Location) -> String {
    let beside = match location {
        Location::File(path) => Path::new(path).with_file_name(FILE).display().to_string(),
        Location::Environment => FILE.to_owned(),
    };
    given.map_or(beside, str::to_owned)
}

/// Reads it; without a file there are no scores.
///
/// # Errors
/// What is wrong with it, and where.
pub(super) fn read(path: &str) -> Result<Scores, Problem> {
    if !Environment.exists(path) && !Path::new(path).is_dir() {
        return Ok(Scores::default());
    }
    let text = Environment.file(path).map_err(|why| Problem {
        place: crate::config::Place { path: path.to_owned(), line: 1, column: 1 },
        key: String::new(),
        message: format!("cannot be read: {why}"),
        remedy: "see that Segue may read it, or name another with --scores".to_owned(),
    })?;
    Scores::read(&text, path)
}

/// Writes it: all of it or, if that fails, nothing.
///
/// # Errors
/// Why it cannot be written; then the file is as it was.
pub(super) fn write(path: &str, scores: &Scores) -> io::Result<()> {
    let text = scores.write()?;
    // Where the name is a link, the file behind it is meant.
    let target = fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = target.with_file_name(name);
    let done = replace(&beside, &target, &text);
    if done.is_err() {
        // There may be none; what matters is told already.
        let _ = fs::remove_file(&beside);
    }
    done
}

// === helpers ===

fn replace(beside: &Path, target: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(beside)?;
    if let Ok(old) = fs::metadata(target) {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(beside, target)
}
