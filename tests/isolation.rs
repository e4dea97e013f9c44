//! Turns of a hundred conversations and ten tenants, many at a time, over sockets: no fragment of one reaches another, no
//! provider sees a key that is not for it, and every turn is accounted for. Providers repeat the mark that they find in a
//! request; they refuse, break in mid-turn and fall silent, so that turns are taken over all the time; some clients hang
//! up. `SEGUE_TURNS=10000` plays as many, a hundred and then a thousand at a time; that takes 4,000 descriptors.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test's panic is its report; figures are printed"
)]

mod support;

use futures::stream::{self, StreamExt};
use http::{HeaderMap, HeaderValue};
use segue::config::{self, Resolver};
use segue::fleet::Held;
use segue::gateway::Gateway;
use segue::rig::origin::{Inquiry, Origin, Scripts};
use segue::rig::script::{Break, Reject, Script};
use segue::upstream::client::Client;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::house::House;
use tokio::time::{sleep, timeout};

struct Keys;

impl Resolver for Keys {
    fn env(&self, name: &str) -> Option<String> {
        Some(format!("secret-{name}."))
    }

    fn file(&self, _: &str) -> Result<String, String> {
        Err("there are no files".to_owned())
    }
}

const TENANTS: usize = 10;
const CONVERSATIONS: usize = 100;
const PROVIDERS: [(&str, &str); 3] = [("a", "chat"), ("b", "anthropic"), ("c", "chat")];

/// `mark-TT-CC-NNNNN`: tenant, conversation, turn.
const MARK: usize = 16;
/// What is the same in all marks of a conversation.
const OF_CONVERSATION: usize = 10;

fn mark(number: usize) -> String {
    let (tenant, conversation) = (number % TENANTS, number / TENANTS % CONVERSATIONS);
    format!("mark-{tenant:02}-{conversation:02}-{number:05}")
}

fn answer(mark: &str) -> Vec<String> {
    (0..6).map(|n| format!("{mark}.{n} ")).collect()
}

/// What the providers noticed.
#[derive(Default)]
struct Noticed {
    wrong: Mutex<Vec<String>>,
    requests: AtomicUsize,
    /// Requests to go on with what another provider had begun.
    taken_over: AtomicUsize,
}

impl Noticed {
    /// Every mark of a request is of one conversation, its one key is that tenant's for this provider, and no other secret
    /// is anywhere in it. Gives the turn's mark.
    fn look(&self, provider: &str, inquiry: &Inquiry<'_>) -> String {
        let body = inquiry.body.to_string();
        let headers = format!("{:?}", inquiry.headers);
        let marks: HashSet<&str> =
            body.match_indices("mark-").filter_map(|(at, _)| body.get(at..at + OF_CONVERSATION + 1)).collect();
        let said = body.rfind("say mark-").and_then(|at| body.get(at + 4..at + 4 + MARK)).unwrap_or_default();
        let tenant: usize = said.get(5..7).and_then(|tenant| tenant.parse().ok()).unwrap_or(usize::MAX);
        let key = match tenant % 2 {
            0 => format!("secret-T{tenant:02}_{provider}."),
            _ => format!("secret-OWN_{provider}."),
        };
        let secrets = headers.matches("secret-").count() + body.matches("secret-").count();
        let foreign = headers.contains("client-key") || body.contains("client-key");
        if marks.len() != 1 || secrets != 1 || !headers.contains(&key) || foreign {
            self.wrong.lock().unwrap().push(format!("{provider} was asked with {headers}: {body}"));
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        let begun = body.matches(&format!("{said}.")).count();
        self.taken_over.fetch_add(usize::from(begun > 0), Ordering::Relaxed);
        said.to_owned()
    }
}

/// A provider of which a third of the answers are broken in some way.
async fn provider(name: &'static str, seat: u64, noticed: &Arc<Noticed>) -> Origin {
    let noticed = Arc::clone(noticed);
    let scripts = Scripts::with(move |inquiry| {
        let mark = noticed.look(name, inquiry);
        let script =
            Script::of_pieces(answer(&mark)).paced(Duration::from_millis(5), Duration::from_millis(2 + 2 * seat));
        let number = inquiry.number + seat;
        let at = (number % 5) as usize;
        Ok(Arc::new(match number % 21 {
            0 | 3 | 6 => script.breaking(at, Break::Reset),
            9 => script.breaking(at, Break::Silence),
            12 => script.breaking(at, Break::Fin),
            15 => script.rejecting(Reject::Error { status: 503, headers: BTreeMap::new(), wrong: None }),
            18 => script.rejecting(Reject::ClosesAtOnce),
            _ => script,
        }))
    });
    Origin::local(scripts).await.unwrap()
}

fn config(origins: &[Origin]) -> config::Config {
    let mut text = String::from("[server]\nmax_turns = 2000\n");
    for ((name, dialect), origin) in PROVIDERS.iter().zip(origins) {
        let base = origin.base_url();
        writeln!(text, "[connections.{name}]\ndialect = \"{dialect}\"\nbase_url = \"{base}\"").unwrap();
        writeln!(text, "api_key = {{ env = \"OWN_{name}\" }}").unwrap();
        writeln!(text, "breaker = {{ consecutive = 1000000, error_rate = 1.0 }}").unwrap();
    }
    text.push_str("[levels.main]\nconversation = \"queue\"\nretries = 0\naffinity = \"0s\"\ntimeouts = { stall = \"2s\" }\nchain = [");
    PROVIDERS.iter().for_each(|(name, _)| write!(text, "{{ connection = \"{name}\", model = \"m\" }}, ").unwrap());
    text.push_str("]\n");
    for tenant in 0..TENANTS {
        let key = Sha256::digest(format!("client-key-{tenant}").as_bytes());
        let digest: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "[tenants.t{tenant:02}]\nkeys = [{{ sha256 = \"{digest}\" }}]").unwrap();
        if tenant % 2 == 0 {
            let own = |name: &str| format!("{name} = {{ env = \"T{tenant:02}_{name}\" }}");
            writeln!(text, "credentials = {{ {}, {}, {} }}", own("a"), own("b"), own("c")).unwrap();
        }
    }
    config::load(&text, "isolation.toml", &Keys)
        .unwrap_or_else(|problems| panic!("{}", problems.iter().map(ToString::to_string).collect::<String>()))
        .config
}

/// How a turn may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum End {
    /// To the last character.
    Whole,
    /// With an error that says so, after nothing but the beginning of its own text.
    Honest,
    /// Its client left.
    HungUp,
}

/// One turn; panics at an end that is none of these.
async fn turn(client: &Client, url: &str, number: usize) -> (End, String) {
    let mark = mark(number);
    let (streamed, leaves) = (number % 7 != 3, number % 11 == 5);
    let body = json!({"model": "main", "stream": streamed, "conversation_id": format!("c{}", &mark[8..10]),
        "messages": [{"role": "user", "content": format!("say {mark}")}]});
    let mut headers = HeaderMap::new();
    let key = format!("Bearer client-key-{}", number % TENANTS);
    headers.insert("authorization", HeaderValue::from_str(&key).unwrap());
    if number % 3 == 1 {
        headers.insert("x-segue-history", HeaderValue::from_static("append"));
    }
    let answer = client.post(url, headers, body.to_string()).await.unwrap();
    let id = answer.headers.get("x-segue-turn").map(|id| id.to_str().unwrap().to_owned()).unwrap_or_default();
    let expected = crate::answer(&mark).concat();
    if answer.status != 200 || !streamed {
        let status = answer.status;
        let body: Value = serde_json::from_slice(&answer.bytes(1 << 20).await.unwrap()).unwrap();
        if status == 200 {
            assert_eq!(body["choices"][0]["message"]["content"], expected.as_str(), "turn {number}");
            return (End::Whole, id);
        }
        assert!([429, 502, 503, 504].contains(&status), "turn {number}: {status} {body}");
        assert!(body["error"]["message"].is_string() && !body.to_string().contains("mark-"), "turn {number}: {body}");
        return (End::Honest, id);
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
        text.push_str(chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
        assert!(expected.starts_with(&text), "turn {number} was told {text:?}");
        if leaves && !text.is_empty() {
            return (End::HungUp, id);
        }
    }
    match (done, failed) {
        (true, false) => assert_eq!(text, expected, "turn {number}"),
        (false, true) => return (End::Honest, id),
        _ => panic!("turn {number} ended without a word after {text:?}"),
    }
    (End::Whole, id)
}

async fn turns_at_once(turns: usize, concurrency: usize) {
    let noticed = Arc::<Noticed>::default();
    let mut origins = Vec::new();
    for ((name, _), seat) in PROVIDERS.into_iter().zip(0..) {
        origins.push(provider(name, seat, &noticed).await);
    }
    let house = House::before(Gateway::new(config(&origins)).unwrap(), origins).await;
    let (client, url) = (Client::new().unwrap(), format!("http://{}/v1/chat/completions", house.addr));
    let ends: Vec<(End, String)> =
        stream::iter(0..turns).map(|number| turn(&client, &url, number)).buffer_unordered(concurrency).collect().await;
    let mut counts: BTreeMap<End, usize> = BTreeMap::new();
    ends.iter().for_each(|(end, _)| *counts.entry(*end).or_default() += 1);
    let (requests, taken_over) = (noticed.requests.load(Ordering::Relaxed), noticed.taken_over.load(Ordering::Relaxed));
    println!("{turns} turns, {concurrency} at a time: {counts:?}; {requests} requests, {taken_over} of them to go on");
    let ids: HashSet<&str> = ends.iter().map(|(_, id)| &**id).filter(|id| !id.is_empty()).collect();
    assert_eq!(ids.len(), ends.iter().filter(|(_, id)| !id.is_empty()).count(), "turns with one id");
    let count = |end| counts.get(&end).copied().unwrap_or(0);
    assert_eq!(count(End::Whole) + count(End::Honest) + count(End::HungUp), turns);
    // Three providers in a row must break for an honest end: a third of a third of a third, nearly.
    assert!(count(End::Honest) < turns / 10, "{counts:?}");
    assert!(turns / 20 < count(End::HungUp), "{counts:?}");
    assert!(turns / 20 < taken_over, "turns were taken over: {taken_over}");
    {
        let wrong = noticed.wrong.lock().unwrap();
        assert!(wrong.is_empty(), "{} requests, such as {}", wrong.len(), wrong.first().unwrap());
    }
    let all_is_back = async {
        let open = || house.origins.iter().map(|origin| origin.records().open_now()).sum::<u64>();
        while house.gateway.open_turns() > 0 || house.gateway.fleet().held() != Held::default() || open() > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let back = timeout(Duration::from_secs(20), all_is_back).await;
    assert!(back.is_ok(), "{} turns are open still, {:?}", house.gateway.open_turns(), house.gateway.fleet().held());
}

/// How many turns, and how many of them at a time: fewer where nothing is optimised and descriptors are few.
fn size() -> (usize, usize) {
    let turns = std::env::var("SEGUE_TURNS").ok().map_or(700, |turns| turns.parse().unwrap());
    (turns, if turns < 10_000 { 200 } else { 1000 })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_at_a_time() {
    turns_at_once(size().0, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_at_a_time() {
    let (turns, many) = size();
    turns_at_once(turns, many).await;
}
