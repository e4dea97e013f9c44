//! A new configuration in the place of the old one, without touching open turns.

use super::setup::{Changes, Setup};
use super::{Gateway, Inner};
use crate::config::prices::Prices;
use crate::config::{Config, Problem};
use std::sync::{Arc, PoisonError};

/// Whoever reads the configuration anew.
pub type Source = dyn Fn(&Config) -> Result<Config, Vec<Problem>> + Send + Sync;

/// Why there was no reload. Everything is as it was.
#[derive(Clone, Debug, PartialEq)]
pub enum NotReloaded {
    /// Nobody knows where the configuration comes from.
    NoSource,
    /// It has mistakes.
    Wrong(Vec<Problem>),
    /// Something cannot be set up.
    Setup(String),
}

// === impl Gateway ===

impl Gateway {
    /// Says where [`Gateway::reload`] finds the configuration; it is given the present one. Only the first word counts.
    pub fn reload_from(&self, source: Box<Source>) {
        if self.0.source.set(source).is_err() {
            tracing::debug!("the source of the configuration is known already");
        }
    }

    /// Reads the configuration anew and puts it to work. Open turns go on as they began.
    ///
    /// # Errors
    /// What is wrong with it; then nothing has changed. Reading blocks.
    pub fn reload(&self) -> Result<Changes, NotReloaded> {
        let source = self.0.source.get().ok_or(NotReloaded::NoSource)?;
        let config = source(&self.config()).map_err(NotReloaded::Wrong)?;
        self.reconfigure(config).map_err(NotReloaded::Setup)
    }

    /// Puts `config` to work in the place of the present one. Open turns go on as they began; connections that did not
    /// change keep their health.
    ///
    /// # Errors
    /// A sentence that names the connection which cannot be set up; then nothing has changed.
    pub fn reconfigure(&self, config: Config) -> Result<Changes, String> {
        let inner: &Inner = &self.0;
        // Written under the lock, so that of two reloads neither is lost.
        inner.metrics.know(&config);
        let prices = Prices::of(&config.ledger);
        let mut setup = inner.setup.write().unwrap_or_else(PoisonError::into_inner);
        let (next, changes): (Setup, Changes) = setup.change(config, &*inner.dial)?;
        *setup = Arc::new(next);
        if let Some(ledger) = inner.ledger.get() {
            ledger.reprice(prices);
        }
        drop(setup);
        tracing::info!(
            connections = changes.connections.join(", "),
            removed = changes.removed.join(", "),
            needs_restart = changes.needs_restart.join(", "),
            "the configuration was reloaded"
        );
        Ok(changes)
    }
}

// === impl NotReloaded ===

impl NotReloaded {
    /// Each mistake of the configuration, with place and remedy.
    pub fn problems(&self) -> Vec<String> {
        match self {
            Self::Wrong(problems) => problems.iter().map(ToString::to_string).collect(),
            Self::NoSource | Self::Setup(_) => vec![self.to_string()],
        }
    }
}

impl std::fmt::Display for NotReloaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSource => f.write_str("this gateway was given its configuration by a program; restart it"),
            Self::Wrong(_) => f.write_str(&self.problems().join("\n")),
            Self::Setup(why) => f.write_str(why),
        }
    }
}
