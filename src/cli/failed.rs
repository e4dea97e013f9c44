//! Why a command could not do its work, and how that is told.

use super::environment::Environment;
use super::paint::{Ink, Paint};
use super::problems;
use crate::config::Problem;
use std::io::{self, Write};
use std::process::ExitCode;

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Failed {
    /// The configuration is wrong.
    Config(Vec<Problem>),
    /// Something could not be set up.
    Setup(String),
    /// Nobody could be told.
    Output(io::Error),
}

// === impl Failed ===

impl Failed {
    /// Says it on standard error; the exit code is 2, or 1 where a reader left.
    pub(super) fn tell(&self) -> ExitCode {
        let paint = Paint::of_stderr();
        let mut out = io::stderr().lock();
        // If standard error is closed there is nobody left to tell.
        let _ = match self {
            Self::Config(list) => problems::write(&mut out, paint, problems::ERROR, list, &Environment),
            Self::Setup(message) => writeln!(out, "{}: {message}", paint.ink(Ink::Bad, "error")),
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::FAILURE,
            Self::Output(error) => writeln!(out, "{}: cannot write: {error}", paint.ink(Ink::Bad, "error")),
        };
        ExitCode::from(2)
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
