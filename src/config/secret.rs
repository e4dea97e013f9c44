//! Values that must not be seen: they have no way out but [`Secret::expose`].

use std::fmt;
use std::sync::Arc;

/// A credential, or text that may hold one. It can be neither printed nor serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

// === impl Secret ===

impl Secret {
    /// Hides `value`.
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Self(value.into())
    }

    /// The value, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let secret = Secret::new("sk-123");
        assert_eq!(format!("{secret:?} {:#?}", Some(&secret)).matches("123").count(), 0);
        assert_eq!(secret.expose(), "sk-123");
    }
}
