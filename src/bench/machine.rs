//! What a benchmark ran on, so that its numbers can be compared.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// How many threads run at once.
    pub cores: usize,
    /// The processor's name, where the system tells it.
    pub cpu: String,
    /// The operating system and the architecture.
    pub system: String,
    /// The program was built with optimisation.
    pub optimised: bool,
}

// === impl Machine ===

impl Machine {
    /// The one that this runs on.
    pub fn this() -> Self {
        let cpu = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| model(&text));
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: cpu.unwrap_or_else(|| "unknown processor".to_owned()),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            optimised: !cfg!(debug_assertions),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, cpu, system, optimised } = self;
        let build = if *optimised { "release" } else { "debug" };
        write!(f, "{cores} cores, {cpu}, {system}, {build} build")
    }
}

// === helpers ===

fn model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name") || line.starts_with("Model"))?;
    let name = line.split_once(':')?.1.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named_where_the_system_names_it() {
        assert_eq!(model("processor\t: 0\nmodel name\t: Fast 9000\n"), Some("Fast 9000".to_owned()));
        assert_eq!(model("processor\t: 0\n"), None);
        assert!(Machine::this().cores >= 1);
    }
}
