//! The real environment and the real files, for `config`, which knows neither.

use crate::config::{Places, Resolver};
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};

/// This process's environment and file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Environment;

// === impl Environment ===

impl Resolver for Environment {
    /// A variable whose value is not Unicode counts as not set.
    fn env(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &str) -> Result<String, String> {
        let mut text = String::new();
        let file = File::open(path).map_err(|e| words(&e))?;
        file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(|e| words(&e))?;
        if text.len() as u64 > MAX_FILE {
            return Err(format!("it is larger than {} MiB", MAX_FILE >> 20));
        }
        Ok(text)
    }
}

impl Places for Environment {
    fn exists(&self, path: &str) -> bool {
        fs::metadata(path).is_ok_and(|m| !m.is_dir())
    }
}

// === helpers ===

fn words(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::PermissionDenied => "it may not be read".to_owned(),
        ErrorKind::InvalidData => "it is not UTF-8 text; save it as UTF-8".to_owned(),
        ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    }
}

/// Neither a configuration nor a secret is larger.
const MAX_FILE: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_misses_are_told() {
        let environment = Environment;
        assert!(environment.exists("Cargo.toml"));
        assert!(!environment.exists("src"));
        assert!(environment.file("Cargo.toml").is_ok_and(|text| text.contains("[package]")));
        assert_eq!(environment.file("no/such/file"), Err("there is no such file".to_owned()));
        assert_eq!(environment.file("src"), Err("it is a directory".to_owned()));
        assert!(environment.env("SEGUE_NO_SUCH_VARIABLE").is_none());
    }
}
