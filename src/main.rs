//! The program `segue`.

use std::process::ExitCode;

/// It gives memory back to the system. What glibc keeps of a flood, in arenas of its own for each thread, is most of it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    segue::cli::main()
}
