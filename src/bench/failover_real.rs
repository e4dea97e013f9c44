//! The failover experiment over sockets: two scripted providers, a gateway, and clients that listen from outside.
//!
//! The turns are those of the simulation, so that its numbers can be held against the clock of a real machine. A turn
//! is known by a mark in its messages, whoever asks and however often; so the same providers can stand behind any
//! other gateway.

use super::failover::{Cell, Experiment, Latency, Mode, Policy};
use super::listener::{Heard, Place};
use super::stats::Sample;
use super::world::PROMPT;
use crate::config::{self, Config};
use crate::gateway::Gateway;
use crate::record::TurnRecord;
use crate::record::account::{self, Account};
use crate::rig::origin::{Inquiry, Origin, Scripts};
use crate::rig::script::Script;
use crate::rig::text;
use crate::routing::After;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// The two providers of an experiment. Dropping them stops them.
#[derive(Debug)]
pub struct Providers {
    /// The first choice.
    pub primary: Origin,
    /// The fallback.
    pub secondary: Origin,
    now: Arc<Present>,
}

/// What the providers play at this moment.
#[derive(Debug, Default)]
struct Present {
    latency: AtomicU8,
    mode: AtomicU8,
}

/// A turn that was heard, and its number.
pub type Turn = (usize, Heard);

// === impl Providers ===

impl Providers {
    /// Starts them; port 0 is any free one.
    ///
    /// # Errors
    /// If one cannot listen.
    pub async fn start(experiment: &Experiment, at: [SocketAddr; 2]) -> std::io::Result<Self> {
        let now = Arc::new(Present::default());
        let scripts = |seat: usize| {
            let (experiment, now) = (experiment.clone(), Arc::clone(&now));
            Scripts::with(move |inquiry| Ok(Arc::new(script(&experiment, &now, seat, inquiry))))
        };
        let primary = Origin::seeded(at[0], scripts(0), experiment.seed).await?;
        let secondary = Origin::seeded(at[1], scripts(1), experiment.seed).await?;
        Ok(Self { primary, secondary, now })
    }

    /// From now on they play this.
    pub fn play(&self, latency: Latency, mode: Mode) {
        let index = |all: Option<usize>| u8::try_from(all.unwrap_or_default()).unwrap_or_default();
        self.now.latency.store(index(Latency::ALL.iter().position(|l| *l == latency)), Ordering::SeqCst);
        self.now.mode.store(index(Mode::ALL.iter().position(|m| *m == mode)), Ordering::SeqCst);
    }
}

// === running ===

/// A gateway before the providers under `policy`.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn gateway(experiment: &Experiment, policy: Policy, providers: &Providers) -> Result<Gateway, String> {
    let text = configuration(experiment, policy, &providers.primary.base_url(), &providers.secondary.base_url());
    Gateway::new(load(&text)?)
}

/// A configuration from its text alone: no environment, no files.
///
/// # Errors
/// What is wrong with it.
pub fn load(text: &str) -> Result<Config, String> {
    let loaded = config::load(text, "segue.toml", &config::Nothing);
    loaded
        .map(|loaded| loaded.config)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// One cell of the experiment: `place` is asked for every turn, warm-up included. With `gateway`, its records give the
/// rates.
pub async fn cell(
    experiment: &Experiment,
    (latency, mode, policy): (Latency, Mode, Policy),
    providers: &Providers,
    place: &Place,
    gateway: Option<&Gateway>,
) -> Cell {
    providers.play(latency, Mode::Healthy);
    let warm = run(experiment, 0..experiment.warm, place).await;
    drop(warm);
    providers.play(latency, mode);
    let from = experiment.warm;
    let turns = run(experiment, from..from + experiment.turns, place).await;
    let account = match gateway {
        Some(gateway) => {
            let records: Vec<TurnRecord> = gateway.recent(experiment.turns);
            account::of(&records)
        }
        None => Account { turns: turns.len(), ..Account::default() },
    };
    summarise(experiment, (latency, mode, policy), &turns, account)
}

/// Asks for turns at random moments, `experiment.rate` a second, and waits for the last.
pub async fn run(experiment: &Experiment, numbers: std::ops::Range<usize>, place: &Place) -> Vec<Turn> {
    let heard: Arc<Mutex<Vec<Turn>>> = Arc::default();
    let mut open = JoinSet::new();
    let begin = Instant::now();
    let mut first = None;
    let times = experiment.arrivals(Latency::LogNormal, Mode::Healthy).map(|arrival| arrival.at);
    for (number, at) in times.enumerate().skip(numbers.start).take(numbers.len()) {
        let at = at.saturating_sub(*first.get_or_insert(at));
        sleep_until(begin + at).await;
        let (place, heard) = (place.clone(), Arc::clone(&heard));
        open.spawn(async move {
            let turn = place.hear(messages(number), |_| {}).await;
            heard.lock().unwrap_or_else(PoisonError::into_inner).push((number, turn));
        });
    }
    while open.join_next().await.is_some() {}
    let mut heard = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
    heard.sort_by_key(|(number, _)| *number);
    heard
}

/// The messages of turn `number`, mark included.
pub fn messages(number: usize) -> Value {
    // As long as the simulation takes prompts to be: four characters are about a token.
    let rules = text::text(text::Kind::Prose, 4 * usize::try_from(PROMPT).unwrap_or_default(), 0);
    json!([{"role": "system", "content": format!("Tell a story. {rules}")},
           {"role": "user", "content": format!("The next one, please. {MARK}{number}.")}])
}

/// What was heard of a gateway whose providers are its own.
pub fn as_it_is(turns: &[Turn]) -> Cell {
    let account = Account { turns: turns.len(), ..Account::default() };
    cell_of((Latency::LogNormal, Mode::Healthy, Policy::Sequential), turns, account)
}

fn summarise(experiment: &Experiment, key: (Latency, Mode, Policy), turns: &[Turn], account: Account) -> Cell {
    let mut cell = cell_of(key, turns, account);
    let told = |number: usize| experiment.scripts(key.0, key.1, experiment.seed_of(number))[0].text();
    let exact = whole(turns).filter(|(number, heard)| heard.text == told(*number)).count();
    cell.exact = Some(share(exact, whole(turns).count()));
    cell
}

fn cell_of((latency, mode, policy): (Latency, Mode, Policy), turns: &[Turn], account: Account) -> Cell {
    let millis = |span: Duration| span.as_secs_f64() * 1e3;
    let first_tokens = Sample::new(turns.iter().filter_map(|(_, heard)| heard.first).map(millis));
    let silences = Sample::new(turns.iter().map(|(_, heard)| millis(heard.silence)));
    Cell {
        latency,
        mode,
        policy,
        first_token: first_tokens.summary(),
        silence: silences.summary(),
        splice_silence: None,
        completed: share(whole(turns).count(), turns.len()),
        exact: None,
        p99_penalty_ms: None,
        penalty_removed: None,
        account,
        first_tokens,
        silences,
    }
}

fn whole(turns: &[Turn]) -> impl Iterator<Item = &Turn> {
    turns.iter().filter(|(_, heard)| heard.is_whole())
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

// === helpers ===

/// What the provider at `seat` does in the turn that the request is marked with; others get a healthy one.
fn script(experiment: &Experiment, now: &Present, seat: usize, inquiry: &Inquiry<'_>) -> Script {
    let pick = |all: &AtomicU8| usize::from(all.load(Ordering::SeqCst));
    let latency = Latency::ALL[pick(&now.latency) % Latency::ALL.len()];
    let mode = Mode::ALL[pick(&now.mode) % Mode::ALL.len()];
    let mut scripts = match number(inquiry.body) {
        Some(number) => experiment.scripts(latency, mode, experiment.seed_of(number)),
        None => experiment.scripts(latency, Mode::Healthy, experiment.seed_of(0)),
    };
    scripts.swap_remove(seat.min(1))
}

fn number(body: &Value) -> Option<usize> {
    let text = body["messages"].to_string();
    let from = text.find(MARK)? + MARK.len();
    let digits: String = text[from..].chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The same level as in the simulation, in the words of the configuration.
pub fn configuration(experiment: &Experiment, policy: Policy, primary: &str, secondary: &str) -> String {
    let level = experiment.level(policy);
    let clocks = level.timeouts;
    let ms = |span: Duration| format!("\"{}ms\"", span.as_millis());
    let off = |span: Option<Duration>| span.map_or_else(|| "\"off\"".to_owned(), ms);
    let pace = clocks
        .pace
        .map_or_else(|| "\"off\"".to_owned(), |p| format!("\"{} chars/s over {}s\"", p.chars, p.window.as_secs()));
    let hedge = level.hedge.map_or_else(String::new, |hedge| {
        let after = match hedge.after {
            After::Time(after) => ms(after),
            After::Percentile(p) => format!("\"p{p}\""),
        };
        let (min, max, budget) = (ms(hedge.min), ms(hedge.max), hedge.budget);
        format!("hedge = {{ after = {after}, min = {min}, max = {max}, budget = {budget} }}\n")
    });
    let how = if policy == Policy::SpeculativePrefill { "prefill" } else { "instruct" };
    let breaker = if experiment.circuits {
        String::new()
    } else {
        "breaker = { consecutive = 1000000, error_rate = 1.0, min_samples = 1000000 }\n".to_owned()
    };
    let connection =
        |name: &str, url: &str| format!("[connections.{name}]\ndialect = \"chat\"\nbase_url = \"{url}\"\n{breaker}\n");
    format!(
        "{}{}[levels.bench]\nchain = [\n  {{ connection = \"primary\", model = \"rig\", continuation = \"{how}\" }},\n  \
         {{ connection = \"secondary\", model = \"rig\", continuation = \"{how}\" }},\n]\n\
         budget = {}\n{hedge}timeouts = {{ first_token = {}, stall = {}, suspect = {}, pace = {pace} }}\n",
        connection("primary", primary),
        connection("secondary", secondary),
        level.budget,
        ms(clocks.first_token),
        ms(clocks.stall),
        off(clocks.suspect),
    )
}

/// What stands before a turn's number in its messages.
const MARK: &str = "This is turn number ";

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;

    #[test]
    fn a_turn_is_known_by_its_mark() {
        assert_eq!(number(&json!({"messages": messages(731)})), Some(731));
        assert_eq!(number(&json!({"messages": []})), None);
    }

    #[test]
    fn the_configuration_says_what_the_simulation_does() {
        for policy in Policy::ALL {
            let experiment = Experiment::default();
            let text = configuration(&experiment, policy, "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1");
            let config = load(&text).unwrap();
            let (configured, simulated) = (&config.levels[0], experiment.level(policy));
            assert_eq!(configured.hedge, simulated.hedge, "{policy:?}");
            assert_eq!(configured.timeouts, simulated.timeouts, "{policy:?}");
            assert_eq!((configured.budget, configured.retries), (simulated.budget, simulated.retries));
            assert_eq!(configured.chain.len(), 2);
        }
    }
}
