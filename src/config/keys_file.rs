//! The clients of a gateway that has no configuration file: `SEGUE_KEYS_FILE` names a file of their keys.

use super::{Place, Problem, Resolver};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The tenants that the file names, as they would stand in a configuration; empty where the variable is not set.
///
/// A line is a tenant's name and one of its keys, or the key's SHA-256 in 64 hexadecimal digits; blank lines and what
/// follows a `#` at the start of a line are skipped.
///
/// # Errors
/// The file cannot be read, holds no key, or holds a line that is none of these.
pub(super) fn tenants(env: &dyn Resolver) -> Result<String, Box<Problem>> {
    let Some(path) = env.env(VARIABLE).filter(|path| !path.trim().is_empty()) else { return Ok(String::new()) };
    let wrong = |line: usize, message: String, remedy: &str| {
        let place = Place { path: path.clone(), line, column: 1 };
        Box::new(Problem { place, key: VARIABLE.to_owned(), message, remedy: remedy.to_owned() })
    };
    let text = env.file(&path).map_err(|why| {
        wrong(1, format!("cannot be read: {why}"), "check the path, and that Segue may read the file")
    })?;
    let mut tenants = BTreeMap::<&str, Vec<String>>::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some(name), Some(key), None) if is_name(name) => tenants.entry(name).or_default().push(digest(key)),
            // The line itself may hold a key, so it is not repeated.
            _ => return Err(wrong(number, "is no tenant's name and key".to_owned(), REMEDY)),
        }
    }
    if tenants.is_empty() {
        return Err(wrong(1, "holds no key".to_owned(), REMEDY));
    }
    let mut written = String::new();
    for (name, keys) in tenants {
        let keys: Vec<_> = keys.iter().map(|digest| format!("{{ sha256 = \"{digest}\" }}")).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(written, "[tenants.{name}]\nkeys = [{}]", keys.join(", "));
    }
    Ok(written)
}

// === helpers ===

fn is_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

fn digest(key: &str) -> String {
    if key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return key.to_ascii_lowercase();
    }
    Sha256::digest(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The variable that names the file.
const VARIABLE: &str = "SEGUE_KEYS_FILE";

const REMEDY: &str =
    "write a name of letters, digits, `-` and `_`, and a key, on each line; `segue key NAME` makes one";

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;

    /// The variable, and the file that it names.
    struct File(&'static str);

    impl Resolver for File {
        fn env(&self, name: &str) -> Option<String> {
            (name == VARIABLE).then(|| "keys".to_owned())
        }

        fn file(&self, path: &str) -> Result<String, String> {
            if path == "keys" { Ok(self.0.to_owned()) } else { Err("there is no such file".to_owned()) }
        }
    }

    const OF_HUSH: &str = "f52b43156c5be1ab4e3f14c3cce2b6b9f29ba9ab2f0c39cb4c1a5f8e7ac4e0c9";

    #[test]
    fn keys_are_kept_as_their_digests_and_a_tenant_may_have_several() {
        let text = format!("# mine\nacme hush\n\n acme  {OF_HUSH}\nother x\n");
        let text: &'static str = Box::leak(text.into_boxed_str());
        let tenants = tenants(&File(text)).unwrap();
        assert!(!tenants.contains("hush"), "{tenants}");
        assert_eq!(tenants.matches("sha256").count(), 3);
        assert!(tenants.contains(OF_HUSH) && tenants.contains("[tenants.other]"));
        let config = super::super::load(&format!("{tenants}{CHAIN}"), "keys", &super::super::Nothing).unwrap().config;
        assert_eq!(config.tenants.unwrap().len(), 2);
    }

    const CHAIN: &str = "[connections.a]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1\"\n\
                         [levels.l]\nchain = [{ connection = \"a\", model = \"m\" }]\n";

    #[test]
    fn what_is_no_key_is_told_by_its_line_and_not_repeated() {
        for (text, line) in [("", 1), ("# nothing\n", 1), ("acme hush\nhush\n", 2), ("a b hush", 1), ("a.b hush", 1)] {
            let problem = tenants(&File(text)).unwrap_err();
            assert_eq!(problem.place.line, line, "{text:?}");
            assert!(!problem.to_string().contains("hush"), "{problem}");
        }
    }
}
