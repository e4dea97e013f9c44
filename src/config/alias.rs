//! Other names for what clients may ask for: exact ones, and patterns, for clients that send names of their own.

use super::document::Section;
use super::problem::did_you_mean;
use std::sync::Arc;

/// One other name, or a pattern of names in which `*` stands for any characters, none too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The name or pattern.
    pub name: Arc<str>,
    /// What it means: a name that may be asked for.
    pub level: Arc<str>,
}

// === impl Alias ===

impl Alias {
    /// Whether it is a pattern.
    pub fn is_pattern(&self) -> bool {
        self.name.contains('*')
    }

    /// Whether `model` fits.
    pub fn fits(&self, model: &str) -> bool {
        let mut parts = self.name.split('*');
        // The first part begins the name, the last ends it, those between come in their order.
        let Some(mut rest) = parts.next().and_then(|first| model.strip_prefix(first)) else { return false };
        let mut parts: Vec<&str> = parts.collect();
        let Some(last) = parts.pop() else { return rest.is_empty() };
        for part in parts {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }

    /// How much of a name it says: of several that fit, the one that says most is meant.
    fn weight(&self) -> usize {
        self.name.len() - self.name.matches('*').count()
    }
}

/// What `model` means by its exact name among `aliases`.
pub fn exact<'a>(aliases: &'a [Alias], model: &str) -> Option<&'a Arc<str>> {
    aliases.iter().find(|alias| *alias.name == *model && !alias.is_pattern()).map(|alias| &alias.level)
}

/// What `model` means by a pattern: by that which says most; of equal ones, the first.
pub fn by_pattern<'a>(aliases: &'a [Alias], model: &str) -> Option<&'a Arc<str>> {
    let fitting = aliases.iter().filter(|alias| alias.is_pattern() && alias.fits(model));
    fitting.rev().max_by_key(|alias| alias.weight()).map(|alias| &alias.level)
}

/// Reads the table `aliases` of `section`; `names` may be asked for, `whose` is who has them, `place` where one is added.
pub(super) fn read(section: &Section<'_>, names: &[&str], (whose, place): (&str, &str)) -> Vec<Alias> {
    let mut aliases: Vec<Alias> = Vec::new();
    for entry in section.names("aliases") {
        let Some(level) = entry.value.text("\"normal\"") else { continue };
        let name = entry.name;
        if names.contains(&name) {
            entry.value.error(format!("`{name}` is a level of {whose} already"), "choose another name");
        } else if name.trim().is_empty() || name.matches('*').count() > MAX_STARS {
            entry.value.error(
                format!("is no name, or has more than {MAX_STARS} `*`"),
                "write for example `\"gpt-4o*\" = \"normal\"`",
            );
        } else if !names.contains(&level) {
            let remedy = did_you_mean(level, names.iter().copied(), place);
            entry.value.error(format!("{whose} has no level `{level}`"), remedy);
        }
        if aliases.len() == MAX_ALIASES {
            entry.value.error(format!("is one more than {MAX_ALIASES} aliases"), "use patterns, such as \"gpt-4o*\"");
            break;
        }
        aliases.push(Alias { name: name.into(), level: level.into() });
    }
    aliases
}

/// The most aliases of one table: every request of an unknown name is compared with each.
const MAX_ALIASES: usize = 256;
/// The most `*` of one pattern.
const MAX_STARS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn alias(name: &str, level: &str) -> Alias {
        Alias { name: name.into(), level: level.into() }
    }

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, fits, does_not) in [
            ("gpt-4o", &["gpt-4o"][..], &["gpt-4", "gpt-4o-mini"][..]),
            ("gpt-4o*", &["gpt-4o", "gpt-4o-mini"], &["a-gpt-4o", "gpt-4"]),
            ("*-mini", &["gpt-4o-mini", "-mini"], &["mini", "x-mini-2"]),
            ("claude-*-20*", &["claude-x-2026", "claude--20"], &["claude-20", "claude-x"]),
            ("*", &["", "anything/at all"], &[]),
            ("a*a", &["aa", "aba"], &["a"]),
            ("*b*b*", &["bb", "abcbd"], &["b"]),
        ] {
            let pattern = alias(pattern, "l");
            assert!(fits.iter().all(|name| pattern.fits(name)), "{pattern:?}");
            assert!(!does_not.iter().any(|name| pattern.fits(name)), "{pattern:?}");
        }
    }

    #[test]
    fn the_pattern_that_says_most_is_meant() {
        let all = [alias("*", "any"), alias("gpt-*", "gpt"), alias("gpt-4o*", "four"), alias("gpt-4o", "exact")];
        let meant = |model| by_pattern(&all, model).map(|level| &**level);
        assert_eq!((meant("gpt-4o-mini"), meant("gpt-3"), meant("x")), (Some("four"), Some("gpt"), Some("any")));
        assert_eq!(exact(&all, "gpt-4o").map(|l| &**l), Some("exact"));
        assert_eq!(exact(&all, "*"), None, "a pattern is no name");
        assert_eq!(by_pattern(&all[3..], "gpt-4o"), None);
    }
}
