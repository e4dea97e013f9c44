//! The gateway and its providers, all on loopback.

use crate::cases::{Case, Client, Expect};
use segue::config::{self, Loaded, Resolver};
use segue::gateway::Gateway;
use segue::rig::origin::{Origin, Scripts};
use segue::server;
use segue::server::listen::{self, Manners};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// A gateway that serves, and those behind it.
pub(crate) struct House {
    pub(crate) addr: SocketAddr,
    gateway: Gateway,
    origins: [Origin; 2],
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

/// Every secret is the same.
struct Secrets;

// === impl House ===

impl House {
    pub(crate) async fn open(cases: &[Case]) -> Self {
        let origin = async |place: usize| {
            let scripts = cases.iter().map(|case| (case.name.clone(), case.scripts[place].clone())).collect();
            Origin::local(Scripts::by_model(scripts, None)).await.unwrap()
        };
        let origins = [origin(0).await, origin(1).await];
        let text = configuration(cases, &origins);
        let Loaded { config, .. } = config::load(&text, "sdk.toml", &Secrets)
            .unwrap_or_else(|problems| panic!("{}", problems.iter().map(|p| format!("{p}\n")).collect::<String>()));
        let gateway = Gateway::new(config).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let manners = Manners { client_write: Duration::from_secs(10), drain: Duration::ZERO };
        let serving = tokio::spawn(listen::serve(listener, server::routes(gateway.clone()), manners, stop.clone()));
        Self { addr, gateway, origins, stop, serving }
    }

    /// What the gateway's own account says of the turns: how many there were and how they went.
    pub(crate) fn judge(&self, client: Client, cases: &[Case]) -> Vec<String> {
        let records = self.gateway.recent(usize::MAX);
        let mut faults = Vec::new();
        for case in cases {
            let turns: Vec<_> = records.iter().filter(|record| *record.level == *case.name).collect();
            let mut check = |is: bool, what: String| {
                if !is {
                    faults.push(case.says("the gateway's account", &what));
                }
            };
            let calls = if matches!(case.expect, Expect::Unknown) { 0 } else { crate::reports::HOWS.len() };
            // An SDK that asks again shows here.
            check(turns.len() == calls, format!("{} turns for {calls} calls", turns.len()));
            let attempts = |n: usize| turns.iter().all(|turn| turn.attempts.len() == n);
            let told =
                || format!("{:?}", turns.iter().map(|t| (t.outcome, t.splices, &t.attempts)).collect::<Vec<_>>());
            match &case.expect {
                Expect::Answer { attempts: n, spliced, .. } => {
                    check(
                        turns.iter().all(|turn| turn.outcome.name() == "complete"),
                        format!("not complete: {}", told()),
                    );
                    check(attempts(*n), format!("not {n} attempts each: {}", told()));
                    // A reset may overtake what was sent before it, so not every turn must have been told something.
                    let most = u32::from(*spliced);
                    check(turns.iter().all(|turn| turn.splices <= most), format!("spliced: {}", told()));
                    check(!spliced || turns.iter().any(|t| t.splices == 1), format!("no splice: {}", told()));
                }
                Expect::Refused { attempts: n, .. } => {
                    check(turns.iter().all(|turn| turn.outcome.name() == "failed"), format!("not failed: {}", told()));
                    check(attempts(*n), format!("not {n} attempts each: {}", told()));
                }
                Expect::Broken { .. } => {
                    check(
                        turns.iter().any(|turn| turn.outcome.name() == "incomplete"),
                        format!("not incomplete: {}", told()),
                    );
                }
                Expect::Unknown => {}
            }
        }
        if self.gateway.open_turns() != 0 {
            faults.push(format!("{client:?}: {} turns are still open", self.gateway.open_turns()));
        }
        faults
    }

    pub(crate) async fn close(self) {
        self.stop.cancel();
        self.serving.await.unwrap();
        for origin in self.origins {
            origin.stop().await;
        }
    }
}

fn configuration(cases: &[Case], origins: &[Origin; 2]) -> String {
    let mut text = String::new();
    for (place, origin) in PLACES.iter().zip(origins) {
        for dialect in ["chat", "anthropic", "responses"] {
            let url = origin.base_url();
            write!(text, "[connections.{place}-{dialect}]\ndialect = \"{dialect}\"\nbase_url = \"{url}\"\n").unwrap();
            text.push_str("api_key = { env = \"KEY\" }\n");
        }
    }
    for Case { name, dialects, level, first, expect, .. } in cases {
        if matches!(expect, Expect::Unknown) {
            continue;
        }
        write!(text, "[levels.{name}]\nretries = 0\n{level}\nchain = [\n").unwrap();
        for (at, (place, dialect)) in PLACES.iter().zip(dialects).enumerate() {
            let more = if at == 0 && !first.is_empty() { format!(", {first}") } else { String::new() };
            writeln!(text, "  {{ connection = \"{place}-{dialect}\", model = \"{name}\"{more} }},").unwrap();
        }
        text.push_str("]\n");
    }
    text
}

// === impl Secrets ===

impl Resolver for Secrets {
    fn env(&self, _: &str) -> Option<String> {
        Some("sk-of-the-gateway".to_owned())
    }

    fn file(&self, path: &str) -> Result<String, String> {
        Err(format!("there are no files here, and no {path}"))
    }
}

// === processes ===

/// Gives `input` to a process and takes its output; one that does not end is ended.
pub(crate) async fn talk(mut command: Command, input: &str) -> String {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let reader = std::thread::spawn(move || {
        let mut output = String::new();
        stdout.read_to_string(&mut output).map(|_| output)
    });
    let until = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > until {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{command:?} did not end within {PATIENCE:?}");
        }
        sleep(Duration::from_millis(20)).await;
    };
    writer.join().unwrap().unwrap();
    let output = reader.join().unwrap().unwrap();
    assert!(status.success(), "{command:?}: {status}\n{output}");
    output
}

// === consts ===

/// The places of a chain, as the connections' names say them.
const PLACES: [&str; 2] = ["first", "second"];

/// All calls of one SDK take some ten seconds.
const PATIENCE: Duration = Duration::from_secs(240);
