//! The systems that are measured: three ways to fail over, as real gateways in this process, and what another gateway is
//! configured with.
//!
//! All three are Segue, so that nothing differs but what is compared. `stateless` hands fallbacks the last message only,
//! `history` all of them, and neither goes on with an answer that has begun: that is an error, and the client asks again.
//! `splice` is Segue as it is. Circuits never open in them, or one conversation's failure would hide another's.

use crate::config::{self, Config};
use crate::gateway::Gateway;
use crate::routing::{Continuation, History};
use crate::server;
use crate::server::listen::{self, Manners};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A way to fail over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum System {
    /// Fallbacks are given the user's last message.
    Stateless,
    /// Fallbacks are given the history; an answer that has begun is not gone on with.
    History,
    /// Segue.
    Splice,
}

/// A gateway that listens. Dropping it stops it.
#[derive(Debug)]
pub struct Serving {
    /// Where clients find it.
    pub url: String,
    stop: CancellationToken,
}

// === impl System ===

impl System {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Stateless, Self::History, Self::Splice];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stateless => "stateless",
            Self::History => "history",
            Self::Splice => "splice",
        }
    }

    /// A gateway of this kind before providers (name and base URL of each, first choice first).
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn gateway(self, places: &[(String, String)], clock: Duration) -> Result<Gateway, String> {
        let mut config = load(&toml(places, clock, ""))?;
        self.apply(&mut config);
        Gateway::new(config)
    }

    /// Makes every level of `config` one of this kind, and keeps its circuits closed.
    pub fn apply(self, config: &mut Config) {
        for level in &mut config.levels {
            let level = Arc::make_mut(level);
            level.history = if self == Self::Stateless { History::LastUserMessage } else { History::Full };
            if self != Self::Splice {
                for entry in &mut level.chain {
                    Arc::make_mut(&mut entry.target).continuation = Continuation::Restart;
                }
            }
        }
        for connection in &mut config.connections {
            let breaker = &mut connection.breaker;
            (breaker.consecutive, breaker.error_rate, breaker.min_samples) = (u32::MAX, 1.0, u32::MAX);
            breaker.latency = None;
        }
    }
}

// === impl Serving ===

impl Serving {
    /// Serves `gateway` on a free port of the loopback interface.
    ///
    /// # Errors
    /// If there is none.
    pub async fn start(gateway: Gateway) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        let stop = CancellationToken::new();
        let manners = Manners { client_write: Duration::from_secs(30), drain: Duration::ZERO };
        let token = stop.clone();
        tokio::spawn(async move { listen::serve(listener, server::routes(gateway), manners, token).await });
        Ok(Self { url, stop })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

// === files for other gateways ===

/// A configuration of Segue before the providers. Its circuits stay closed, or one conversation's failure would hide
/// another's; how to let them open stands in it.
pub fn segue_file(places: &[(String, String)], clock: Duration, cooldown: Duration) -> String {
    let breaker = format!(
        "# Circuits stay closed, so that every planned failure is met. As in service: {{ cooldown = \"{}ms\" }}\n\
         breaker = {{ consecutive = 1000000, error_rate = 1.0, min_samples = 1000000 }}\n",
        cooldown.as_millis()
    );
    toml(places, clock, &breaker)
}

/// A configuration of the LiteLLM proxy before the providers.
pub fn litellm_file(places: &[(String, String)], clock: Duration, cooldown: Duration) -> String {
    let seconds = |span: Duration| span.as_secs_f64();
    let mut text =
        "# litellm --config FILE --port 4000; the model to ask for is the first one\nmodel_list:\n".to_owned();
    for (name, url) in places {
        let _ = write!(
            text,
            "  - model_name: {name}\n    litellm_params:\n      model: openai/recall\n      api_base: {url}\n      \
             api_key: none\n      timeout: {clock}\n      stream_timeout: {clock}\n",
            clock = seconds(clock)
        );
    }
    if let Some(((first, _), others)) = places.split_first() {
        let others = others.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let _ = write!(
            text,
            "router_settings:\n  num_retries: 0\n  # No deployment is shut out, so that every planned failure is met. As in \
             service: cooldown_time: {}\n  disable_cooldowns: true\n  fallbacks: [{{\"{first}\": [{others}]}}]\n",
            seconds(cooldown)
        );
    }
    text
}

// === helpers ===

fn load(text: &str) -> Result<Config, String> {
    let words = |all: Vec<config::Problem>| all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    Ok(config::load(text, "segue.toml", &config::Nothing).map_err(words)?.config)
}

fn toml(places: &[(String, String)], clock: Duration, breaker: &str) -> String {
    let mut text = String::new();
    for (name, url) in places {
        let _ = write!(text, "[connections.{name}]\ndialect = \"chat\"\nbase_url = \"{url}\"\n{breaker}\n");
    }
    text.push_str("[levels.bench]\nchain = [\n");
    for (name, _) in places {
        let _ = writeln!(text, "  {{ connection = \"{name}\", model = \"recall\" }},");
    }
    let clock = clock.as_millis();
    let _ = write!(text, "]\nretries = 0\ntimeouts = {{ first_token = \"{clock}ms\", stall = \"{clock}ms\" }}\n");
    text
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;

    fn places() -> Vec<(String, String)> {
        ["amber", "birch"].map(|name| (name.to_owned(), format!("http://127.0.0.1:1/{name}/v1"))).to_vec()
    }

    #[test]
    fn the_systems_differ_in_what_is_compared_and_in_nothing_else() {
        let clock = Duration::from_millis(700);
        let level = |system: System| {
            let mut config = load(&toml(&places(), clock, "")).unwrap();
            system.apply(&mut config);
            config.levels.remove(0)
        };
        let rules = |system: System| {
            let level = level(system);
            (level.history, level.chain[1].target.continuation)
        };
        assert_eq!(rules(System::Stateless), (History::LastUserMessage, Continuation::Restart));
        assert_eq!(rules(System::History), (History::Full, Continuation::Restart));
        assert_eq!(rules(System::Splice), (History::Full, Continuation::Auto));
        for system in System::ALL {
            let level = level(system);
            assert_eq!((level.timeouts.first_token, level.timeouts.stall, level.retries), (clock, clock, 0));
        }
    }

    #[test]
    fn the_files_for_others_name_every_provider() {
        let (clock, cooldown) = (Duration::from_secs(1), Duration::from_secs(5));
        let own = segue_file(&places(), clock, cooldown);
        assert_eq!(load(&own).unwrap().levels[0].chain.len(), 2);
        let text = litellm_file(&places(), clock, cooldown);
        for words in [
            "model_name: amber",
            "api_base: http://127.0.0.1:1/birch/v1",
            "[{\"amber\": [\"birch\"]}]",
            "cooldown_time: 5",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }
}
