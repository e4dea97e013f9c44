//! Where the configuration comes from.

use super::{Loaded, Place, Problem, Resolver, from_environment, load};
use std::fmt;

/// A resolver that can also say whether a file is there.
pub trait Places: Resolver {
    /// Whether there is a file at `path`.
    fn exists(&self, path: &str) -> bool;
}

/// Where the configuration comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A file.
    File(String),
    /// There is none: the keys in the environment.
    Environment,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File(path) => path,
            Self::Environment => "the keys in the environment",
        })
    }
}

/// The file that was `given`, else the one that `SEGUE_CONFIG` names, else `./segue.toml`, else `segue/segue.toml` in the
/// user's configuration directory, else `/etc/segue/segue.toml`, else the environment. A file that was given or named is
/// the answer even if it does not exist: to read it is to hear of that.
pub fn locate(given: Option<&str>, places: &dyn Places) -> Location {
    let named = || places.env(VARIABLE).filter(|path| !path.trim().is_empty());
    if let Some(path) = given.map(str::to_owned).or_else(named) {
        return Location::File(path);
    }
    let here = LOCAL.to_owned();
    std::iter::once(here)
        .chain(in_home(places))
        .chain([SYSTEM.to_owned()])
        .find(|path| places.exists(path))
        .map_or(Location::Environment, Location::File)
}

/// Finds the configuration and reads it.
///
/// # Errors
/// Everything that is wrong with it, or that there is none.
pub fn open(given: Option<&str>, places: &dyn Places) -> Result<Loaded, Vec<Problem>> {
    let nowhere = |path: String, message: String, remedy: String| {
        vec![Problem { place: Place { path, line: 1, column: 1 }, key: String::new(), message, remedy }]
    };
    match locate(given, places) {
        Location::File(path) => match places.file(&path) {
            Ok(text) => load(&text, &path, places),
            Err(why) => Err(nowhere(
                path,
                format!("cannot be read: {why}"),
                "check the path given with --config or in SEGUE_CONFIG, and that Segue may read the file".to_owned(),
            )),
        },
        Location::Environment => match from_environment(places) {
            Some(loaded) => loaded,
            None => Err(nowhere(
                LOCAL.to_owned(),
                "there is no configuration, and no provider's key is in the environment".to_owned(),
                format!(
                    "set one of {}, or write a {LOCAL}; `segue demo` runs without either",
                    super::zero::variables().join(", ")
                ),
            )),
        },
    }
}

/// `segue/segue.toml` in `$XDG_CONFIG_HOME`, or in `~/.config` where that is not set to an absolute path.
fn in_home(env: &dyn Places) -> Option<String> {
    let xdg = env.env("XDG_CONFIG_HOME").filter(|dir| dir.starts_with('/'));
    let dir = xdg.or_else(|| Some(format!("{}/.config", env.env("HOME").filter(|home| !home.is_empty())?)))?;
    Some(format!("{}/segue/{LOCAL}", dir.trim_end_matches('/')))
}

/// The variable that names the file.
const VARIABLE: &str = "SEGUE_CONFIG";

/// Where a package or a container keeps the file.
const SYSTEM: &str = "/etc/segue/segue.toml";

/// The file beside which Segue was started.
const LOCAL: &str = "segue.toml";
