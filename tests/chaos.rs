//! The built program between honest clients and one that attacks it in every way it can: the others' turns are exact
//! whatever is thrown at the gateway beside them, and their first tokens come as before.
//!
//! `SEGUE_SECONDS=900 SEGUE_STREAMS=200` plays it for a quarter of an hour; half of the time without the attacker, for
//! comparison. What the first tokens took is printed and decides nothing: the machine is shared.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test's panic is its report")]
#![expect(clippy::print_stdout, reason = "figures are printed")]

mod support;

use futures::StreamExt;
use http::HeaderMap;
use segue::rig::origin::{Origin, Scripts};
use segue::rig::script::{Break, Reject, Script};
use segue::upstream::client::Client;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::attacks;
use support::program::{Running, SERVE, Stream, scratch};
use tokio::task::JoinSet;

/// What a turn tells: its own number, again and again, so that a piece of another turn would show.
fn answer(number: usize) -> Vec<String> {
    (0..20).map(|piece| format!("turn {number} says {piece}. ")).collect()
}

/// A provider that repeats the number it is asked for. One answer of seven breaks, and one request of twenty is refused.
async fn provider(seat: u64) -> Origin {
    let scripts = Scripts::with(move |inquiry| {
        let body = inquiry.body.to_string();
        let number = body.split("turn number ").nth(1).map(|n| n.chars().take_while(char::is_ascii_digit).collect());
        let number: usize = number.and_then(|n: String| n.parse().ok()).unwrap_or_default();
        let script = Script::of_pieces(answer(number)).paced(Duration::from_millis(30), Duration::from_millis(20));
        let nth = inquiry.number + seat;
        let at = (nth % 17) as usize;
        Ok(Arc::new(match nth % 20 {
            3 => script.breaking(at, Break::Reset),
            9 => script.breaking(at, Break::Fin),
            14 => script.breaking(at, Break::CleanEnd),
            17 => script.rejecting(Reject::Error { status: 500, headers: BTreeMap::new(), wrong: None }),
            _ => script,
        }))
    });
    Origin::local(scripts).await.unwrap()
}

fn configuration(honest: &[Origin], evil: u16) -> String {
    let mut text = String::from("[server]\nbuffer = \"256MiB\"\n");
    for (name, origin) in ["a", "b", "c"].iter().zip(honest) {
        let base = origin.base_url();
        writeln!(text, "[connections.{name}]\ndialect = \"chat\"\nbase_url = \"{base}\"").unwrap();
        // One answer of five is broken by order: what is tried here is not the breaker.
        writeln!(text, "breaker = {{ consecutive = 1000000, error_rate = 1.0 }}").unwrap();
    }
    for name in ["x", "y"] {
        let base = format!("http://127.0.0.1:{evil}/v1");
        writeln!(text, "[connections.{name}]\ndialect = \"chat\"\nbase_url = \"{base}\"").unwrap();
        writeln!(text, "breaker = {{ consecutive = 1000000, error_rate = 1.0 }}").unwrap();
    }
    text.push_str("[levels.main]\nchain = [{ connection = \"a\", model = \"m\" }, { connection = \"b\", model = \"m\" }, { connection = \"c\", model = \"m\" }]\n");
    for model in attacks::MODELS {
        writeln!(text, "[levels.{model}]\nretries = 0\ntimeouts = {{ turn = \"10s\" }}\nchain = [{{ connection = \"x\", model = \"{model}\" }}, {{ connection = \"y\", model = \"{model}\" }}]").unwrap();
    }
    text
}

/// What the honest clients saw in some time.
#[derive(Default)]
struct Seen {
    whole: usize,
    /// Ended by an error that says so, after nothing but the beginning of its own text.
    honest: usize,
    first_tokens: Vec<Duration>,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.whole += other.whole;
        self.honest += other.honest;
        self.first_tokens.extend(other.first_tokens);
    }

    fn percentile(&self, share: f64) -> Duration {
        let mut times = self.first_tokens.clone();
        times.sort_unstable();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "small"
        )]
        let at = (times.len() as f64 * share) as usize;
        times.get(at.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    fn print(&self, when: &str) {
        println!(
            "{when}: {} turns whole, {} ended by an honest error; first token p50 {:?}, p95 {:?}, p99 {:?}",
            self.whole,
            self.honest,
            self.percentile(0.5),
            self.percentile(0.95),
            self.percentile(0.99)
        );
    }
}

async fn turn(client: &Client, url: &str, number: usize, seen: &mut Seen) {
    let body = json!({"model": "main", "stream": true,
        "messages": [{"role": "user", "content": format!("This is turn number {number}.")}]});
    let begun = Instant::now();
    let answer = client.post(url, HeaderMap::new(), body.to_string()).await.unwrap();
    let expected = self::answer(number).concat();
    if answer.status != 200 {
        // Three providers that break one after the other, or no room for one more turn.
        assert!([500, 502, 503, 504].contains(&answer.status), "turn {number}: {}", answer.status);
        seen.honest += 1;
        return;
    }
    let (mut text, mut done, mut failed) = (String::new(), false, false);
    let mut events = answer.events();
    while let Some(event) = events.next().await {
        let data = event.unwrap().data;
        assert!(!done && !failed, "turn {number}: something follows its end: {data}");
        if data == "[DONE]" {
            done = true;
            continue;
        }
        let chunk: Value = serde_json::from_str(&data).unwrap();
        failed = chunk.get("error").is_some();
        let piece = chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
        if text.is_empty() && !piece.is_empty() {
            seen.first_tokens.push(begun.elapsed());
        }
        text.push_str(piece);
        assert!(expected.starts_with(&text), "turn {number} was told {text:?}");
    }
    assert!(done != failed, "turn {number} ended without a word after {text:?}");
    if done {
        assert_eq!(text, expected, "turn {number}");
        seen.whole += 1;
    } else {
        seen.honest += 1;
    }
}

/// Keeps so many streams open for so long.
async fn honest(url: &str, streams: usize, length: Duration, numbers: &Arc<AtomicUsize>) -> Seen {
    let until = Instant::now() + length;
    let mut clients = JoinSet::new();
    for _ in 0..streams {
        let (url, numbers) = (url.to_owned(), Arc::clone(numbers));
        clients.spawn(async move {
            let (client, mut seen) = (Client::new().unwrap(), Seen::default());
            while Instant::now() < until {
                let number = numbers.fetch_add(1, Ordering::Relaxed);
                turn(&client, &url, number, &mut seen).await;
            }
            seen
        });
    }
    let mut all = Seen::default();
    while let Some(seen) = clients.join_next().await {
        all.add(seen.unwrap());
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg(target_os = "linux")]
async fn whatever_one_client_does_the_others_are_exact() {
    let number = |name: &str, default| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let half = Duration::from_secs(number("SEGUE_SECONDS", 8) / 2);
    let streams = usize::try_from(number("SEGUE_STREAMS", 20)).unwrap();
    let providers = [provider(0).await, provider(7).await, provider(12).await];
    let file = scratch("chaos", &configuration(&providers, attacks::provider().await));
    let arguments = [&SERVE[..], &["--config", file.to_str().unwrap()]].concat();
    let mut gateway = Running::start(&arguments, &[], Stream::Err);
    let base_url = gateway.find("  clients  ", "/v1") + "/v1";
    let url = format!("{base_url}/chat/completions");
    let address = base_url.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let numbers = Arc::<AtomicUsize>::default();

    let quiet = honest(&url, streams, half, &numbers).await;
    quiet.print("without the attacker");

    let stop = Arc::new(AtomicBool::new(false));
    let attacker = attacks::all(&address, &stop);
    let attacked = honest(&url, streams, half, &numbers).await;
    stop.store(true, Ordering::Relaxed);
    let told = attacker.join_all().await;
    attacked.print("with the attacker");
    for (attack, statuses) in told {
        println!("  {attack}: {statuses:?}");
        assert!(!statuses.is_empty(), "{attack} was never played");
    }
    println!("memory, now and at most: {} MiB, {} MiB", memory(gateway.id(), "VmRSS"), memory(gateway.id(), "VmHWM"));

    // Three in a row break for an honest end: about one of a hundred and twenty-five.
    for seen in [&quiet, &attacked] {
        assert!(seen.honest * 10 <= seen.whole, "{} of {} turns failed", seen.honest, seen.whole + seen.honest);
    }
    assert_eq!(gateway.stop(), Some(0), "it ends as it is asked to");
    for provider in providers {
        provider.stop().await;
    }
}

/// A line of what the system says of a process, in MiB.
fn memory(process: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_matches([':', ' ', '\t']).split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1024
}
