//! Who is measured: three gateways in this process, with built-in or real providers, or another gateway.

use super::{Arguments, key};
use crate::bench::continuity::account::Witness;
use crate::bench::continuity::answer::PROVIDERS;
use crate::bench::continuity::inject::Injected;
use crate::bench::continuity::listener::Place;
use crate::bench::continuity::manifest::Manifest;
use crate::bench::continuity::player::Player;
use crate::bench::continuity::recall::{Pace, Recall};
use crate::bench::continuity::record::{End, Record};
use crate::bench::continuity::run::{self, Extent};
use crate::bench::continuity::suite::Conversation;
use crate::bench::continuity::systems::{Serving, System, litellm_file, segue_file};
use crate::cli::Failed;
use crate::cli::environment::Environment;
use crate::cli::results::{say, write};
use crate::config::Config;
use crate::config::lookup;
use crate::gateway::Gateway;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Who is measured.
pub(super) enum Subject {
    /// Gateways in this process before the built-in providers.
    BuiltIn(Arc<Recall>, Vec<System>),
    /// Gateways in this process before real providers.
    Real(Box<Real>, Vec<System>),
    /// Another gateway before the built-in providers.
    Other(Arc<Recall>, Box<Place>, String),
}

/// Real providers.
pub(super) struct Real {
    config: Config,
    injected: Arc<Injected>,
    names: Vec<String>,
    level: String,
}

// === impl Subject ===

impl Subject {
    pub(super) async fn choose(arguments: &Arguments, suite: &[Conversation]) -> Result<Self, Failed> {
        let systems: Vec<System> = match arguments.systems.as_slice() {
            [] => System::ALL.to_vec(),
            some => System::ALL.into_iter().filter(|s| some.iter().any(|named| named.system() == *s)).collect(),
        };
        if let Some(path) = &arguments.config {
            return Ok(Self::Real(Box::new(Real::read(path, arguments.level.as_deref(), suite)?), systems));
        }
        // Who only wants a manifest need not have free ports.
        let stated = arguments.url.is_some() && arguments.draw.is_none();
        let first = if stated { arguments.providers_at } else { SocketAddr::from((Ipv4Addr::LOCALHOST, 0)) };
        let at = [0, 1, 2, 3].map(|step| match first.port() {
            0 => first,
            port => SocketAddr::new(first.ip(), port.saturating_add(step)),
        });
        let pace = Pace { first: FIRST, gap: arguments.word };
        let recall = Recall::start(suite, pace, at).await.map_err(|error| {
            Failed::Setup(format!(
                "the providers cannot listen on {} and the three ports after it: {error}; choose others with \
                 --providers-at",
                at[0]
            ))
        })?;
        let recall = Arc::new(recall);
        let Some(url) = &arguments.url else { return Ok(Self::BuiltIn(recall, systems)) };
        let model = arguments.model.as_deref().unwrap_or_default();
        let key = key(arguments.key_env.as_deref(), "--key-env")?;
        let place = Place::new(url, model, key.as_deref(), arguments.client_timeout).map_err(Failed::Setup)?;
        Ok(Self::Other(recall, Box::new(place), arguments.name.clone()))
    }

    /// The providers, in the order in which they are asked.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Self::BuiltIn(..) | Self::Other(..) => PROVIDERS.map(str::to_owned).to_vec(),
            Self::Real(real, _) => real.names.clone(),
        }
    }

    /// The names of what is measured.
    pub(super) fn systems(&self) -> Vec<String> {
        match self {
            Self::BuiltIn(_, systems) | Self::Real(_, systems) => systems.iter().map(|s| s.name().to_owned()).collect(),
            Self::Other(_, _, name) => vec![name.clone()],
        }
    }

    pub(super) fn words(&self) -> String {
        let systems = self.systems().join(", ");
        match self {
            Self::BuiltIn(..) => format!("{systems}, in this process, before the built-in providers"),
            Self::Real(real, _) => {
                format!("{systems}, in this process, before {} (level {})", real.names.join(", "), real.level)
            }
            Self::Other(..) => format!("{systems}, before the built-in providers"),
        }
    }

    /// Says what another gateway is to be configured with, and waits until it answers.
    pub(super) async fn ready(&self, arguments: &Arguments) -> Result<(), Failed> {
        let Self::Other(recall, place, _) = self else { return Ok(()) };
        let places = recall.places();
        let (clock, cooldown) = (arguments.clock, arguments.cooldown);
        std::fs::create_dir_all(&arguments.files)
            .map_err(|error| Failed::Setup(format!("--files {}: {error}", arguments.files.display())))?;
        let (litellm, segue) = (arguments.files.join("litellm.yaml"), arguments.files.join("segue.toml"));
        let texts = [litellm_file(&places, clock, cooldown), segue_file(&places, clock, cooldown)];
        for (path, text) in [&litellm, &segue].into_iter().zip(&texts) {
            if path.exists() && std::fs::read_to_string(path).ok().as_ref() != Some(text) {
                return Err(Failed::Setup(format!(
                    "{} is there already; move it away, or choose another directory with --files",
                    path.display()
                )));
            }
        }
        write(&litellm, &texts[0])?;
        write(&segue, &texts[1])?;
        let list: Vec<String> = places.iter().map(|(name, url)| format!("  {name:6} {url}")).collect();
        say(&format!(
            "Configure the gateway with these providers, each the fallback of the one above it. They speak Chat \
             Completions, model `recall`, any key:\n{}\nReady files:\n  litellm --config {} --port 4000   (model \
             amber)\n  segue serve --config {}   (model bench)\nWaiting until it answers …",
            list.join("\n"),
            litellm.display(),
            segue.display()
        ))?;
        let deadline = tokio::time::Instant::now() + arguments.wait;
        loop {
            let heard = place.hear(&[json!({"role": "user", "content": "Are you there?"})], &[]).await;
            match heard.end {
                End::Finished => return Ok(()),
                end if deadline < tokio::time::Instant::now() => {
                    return Err(Failed::Setup(format!("the gateway did not answer in time; the last try: {end:?}")));
                }
                _ => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// Plays all conversations with one system; `manifest`: what fails.
    pub(super) async fn play(
        &self,
        arguments: &Arguments,
        system: &str,
        manifest: Option<&Arc<Manifest>>,
        suite: &Arc<[Conversation]>,
        done: impl FnMut(),
    ) -> Result<Vec<Record>, Failed> {
        let extent = Extent { runs: arguments.runs, concurrency: usize::from(arguments.concurrency) };
        let player = |place: Place, witness: Arc<dyn Witness>, scripted: bool, order: Vec<String>| Player {
            system: system.to_owned(),
            place,
            witness,
            scripted,
            order,
            stateless: system == System::Stateless.name(),
            retries: arguments.client_retries,
            cooldown: arguments.cooldown,
        };
        // The gateway of this run; it is gone after it.
        let mut serving = None;
        let player = match self {
            Self::BuiltIn(recall, _) => {
                recall.play(manifest.map(AsRef::as_ref));
                let gateway = of(system).gateway(&recall.places(), arguments.clock).map_err(Failed::Setup)?;
                let place = front(gateway, "bench", arguments, &mut serving).await?;
                player(place, Arc::clone(recall) as Arc<dyn Witness>, true, self.names())
            }
            Self::Real(real, _) => {
                real.injected.play(manifest.cloned());
                let place = front(real.gateway(of(system))?, &real.level, arguments, &mut serving).await?;
                player(place, Arc::clone(&real.injected) as Arc<dyn Witness>, false, self.names())
            }
            Self::Other(recall, place, _) => {
                recall.play(manifest.map(AsRef::as_ref));
                player((**place).clone(), Arc::clone(recall) as Arc<dyn Witness>, true, Vec::new())
            }
        };
        Ok(run::play(&player, suite, manifest, extent, done).await)
    }
}

// === impl Real ===

impl Real {
    fn read(path: &str, level: Option<&str>, suite: &[Conversation]) -> Result<Self, Failed> {
        let mut config = lookup::open(Some(path), &Environment).map_err(Failed::Config)?.config;
        let known: Vec<&str> = config.levels.iter().map(|l| &*l.name).collect();
        let found = config.levels.iter().find(|l| level.is_none_or(|name| *l.name == *name));
        let Some(found) = found.cloned() else {
            let name = level.unwrap_or_default();
            return Err(Failed::Setup(format!("--level: there is no level `{name}`; there are {}", known.join(", "))));
        };
        let mut names: Vec<String> = found.chain.iter().map(|e| e.target.connection.to_string()).collect();
        names.dedup();
        let level = found.name.to_string();
        // The benchmark is the only client, on loopback.
        (config.levels, config.tenants) = (vec![found], None);
        Ok(Self { config, injected: Arc::new(Injected::new(suite)), names, level })
    }

    fn gateway(&self, system: System) -> Result<Gateway, Failed> {
        let mut config = self.config.clone();
        system.apply(&mut config);
        let faults = Arc::clone(&self.injected.faults);
        Gateway::decorated(config, move |name, upstream| faults.around(name, upstream)).map_err(Failed::Setup)
    }
}

// === helpers ===

/// Serves `gateway` on loopback.
async fn front(
    gateway: Gateway,
    model: &str,
    arguments: &Arguments,
    serving: &mut Option<Serving>,
) -> Result<Place, Failed> {
    let setup = |error: std::io::Error| Failed::Setup(format!("no loopback port to listen on: {error}"));
    let started = serving.insert(Serving::start(gateway).await.map_err(setup)?);
    Place::new(&started.url, model, None, arguments.client_timeout).map_err(Failed::Setup)
}

fn of(name: &str) -> System {
    System::ALL.into_iter().find(|system| system.name() == name).unwrap_or(System::Splice)
}

/// How long the built-in providers take to their first word.
const FIRST: Duration = Duration::from_millis(5);

/// Between two tries to reach another gateway.
const POLL: Duration = Duration::from_millis(500);
