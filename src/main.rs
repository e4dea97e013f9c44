//! The program `segue`.

use std::process::ExitCode;

fn main() -> ExitCode {
    segue::cli::main()
}
