//! Ten thousand turns of a hundred conversations and ten tenants, a hundred and a thousand at a time: no fragment of one
//! reaches another, and no provider sees a key that is not for it. Providers repeat the mark that they find in a request,
//! and many of them die in mid-turn, so that turns are taken over all the time.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use http::HeaderMap;
use segue::chat::DialectId;
use segue::config::{self, Resolver};
use segue::dialect;
use segue::event::Signal;
use segue::gateway::Gateway;
use segue::gateway::drive::Start;
use segue::rig::inside::Inside;
use segue::rig::origin::Scripts;
use segue::rig::script::{Break, Script};
use segue::upstream::{Call, Upstream};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

struct Keys;

impl Resolver for Keys {
    fn env(&self, name: &str) -> Option<String> {
        Some(format!("secret-{name}"))
    }

    fn file(&self, _: &str) -> Result<String, String> {
        Err("there are no files".to_owned())
    }
}

const TENANTS: usize = 10;
const CONVERSATIONS: usize = 100;
const TURNS: usize = 10_000;

/// A provider that looks at what it is given.
struct Watched {
    name: &'static str,
    plays: Inside,
    wrong: Arc<Mutex<Vec<String>>>,
    taken_over: Arc<AtomicUsize>,
}

impl Upstream for Watched {
    fn open(&self, call: Call) -> BoxStream<'static, Signal> {
        let body = String::from_utf8_lossy(&call.wire.body).into_owned();
        let headers = format!("{:?}", call.wire.headers);
        let marks: Vec<&str> = body.match_indices("mark-").map(|(at, _)| &body[at..at + MARK]).collect();
        let mark = marks.first().copied().unwrap_or_default();
        // `mark-TT-CC-NNNNN`: every mark of a request is of one tenant, and its key is that tenant's for this provider.
        let tenant = mark.get(5..7).unwrap_or_default();
        let other = marks.iter().any(|m| m.get(5..7) != Some(tenant));
        let expected =
            (tenant.parse::<usize>().unwrap_or(0) % 2 == 0).then(|| format!("secret-T{tenant}_{}", self.name));
        let key = call.credential.as_deref().map(str::to_owned);
        let leaked = body.contains("secret-") || headers.contains("secret-") || body.contains("client-key");
        if other || key != expected || leaked || headers.contains("client-key") {
            self.wrong.lock().unwrap().push(format!("{}: key {key:?}, marks {marks:?}", self.name));
        }
        if marks.len() > 1 {
            self.taken_over.fetch_add(1, Ordering::Relaxed);
        }
        self.plays.open(call)
    }
}

/// The length of a mark.
const MARK: usize = 16;

/// Tells the mark of the request again and again; every third breaks somewhere.
fn plays(seat: u64) -> Inside {
    let scripts = Scripts::with(move |inquiry| {
        let text = inquiry.body["messages"].to_string();
        let at = text.find("mark-").unwrap_or_default();
        let mark = text.get(at..at + MARK).unwrap_or("mark-none");
        let words = (0..6).map(|n| format!("{mark}.{n} ")).collect::<Vec<_>>();
        let script = Script::of_pieces(words).paced(Duration::from_millis(20), Duration::from_millis(5 + seat));
        let number = inquiry.number;
        Ok(Arc::new(if number.is_multiple_of(3) {
            script.breaking((number % 5) as usize, Break::Reset)
        } else {
            script
        }))
    });
    Inside::new(scripts, seat)
}

fn config() -> config::Config {
    let mut text = String::from("[server]\nmax_turns = 2000\n");
    for name in ["a", "b", "c"] {
        write!(
            text,
            "[connections.{name}]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
             api_key = {{ env = \"OWN_{name}\" }}\nbreaker = {{ consecutive = 1000000, error_rate = 1.0 }}\n"
        )
        .unwrap();
    }
    text.push_str(
        "[levels.main]\nconversation = \"queue\"\nchain = [{ connection = \"a\", model = \"m\" }, { connection = \"b\", \
         model = \"m\" }, { connection = \"c\", model = \"m\" }]\n",
    );
    for tenant in 0..TENANTS {
        let key = Sha256::digest(format!("client-key-{tenant}").as_bytes());
        let digest: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        write!(text, "[tenants.t{tenant:02}]\nkeys = [{{ sha256 = \"{digest}\" }}]\n").unwrap();
        if tenant % 2 == 0 {
            let own = |name: &str| format!("{name} = {{ env = \"T{tenant:02}_{name}\" }}");
            writeln!(text, "credentials = {{ {}, {}, {} }}", own("a"), own("b"), own("c")).unwrap();
        }
    }
    config::load(&text, "isolation.toml", &Keys).unwrap().config
}

/// What one turn was told.
async fn turn(gateway: &Gateway, tenant: usize, conversation: usize, number: usize) -> Result<String, String> {
    let mark = format!("mark-{tenant:02}-{conversation:02}-{number:05}");
    let body = json!({"model": "main", "stream": true, "conversation_id": format!("c{conversation}"),
        "messages": [{"role": "user", "content": format!("say {mark}")}]});
    let request =
        dialect::of(DialectId::Chat).unwrap().parse(&HeaderMap::new(), &Bytes::from(body.to_string())).unwrap();
    let caller = gateway.authorize(Some(&format!("client-key-{tenant}"))).unwrap();
    let mut drive = gateway.begin(&caller, request).await.map_err(|r| r.code)?;
    if let Start::Refused(refusal) = drive.start(None).await {
        return Err(refusal.code);
    }
    let mut text = String::new();
    while let Some(bytes) = poll_fn(|cx| drive.poll_frame(cx)).await {
        for line in String::from_utf8_lossy(&bytes).lines() {
            let Some(Ok(event)) = line.strip_prefix("data: ").map(serde_json::from_str::<Value>) else { continue };
            text.push_str(event["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
        }
    }
    Ok(text)
}

async fn turns_at_once(concurrency: usize) {
    let (wrong, taken_over) = (Arc::<Mutex<Vec<String>>>::default(), Arc::new(AtomicUsize::new(0)));
    let upstreams: HashMap<Arc<str>, Arc<dyn Upstream>> = ["a", "b", "c"]
        .into_iter()
        .zip(0..)
        .map(|(name, seat)| {
            let (wrong, taken_over) = (Arc::clone(&wrong), Arc::clone(&taken_over));
            (name.into(), Arc::new(Watched { name, plays: plays(seat), wrong, taken_over }) as Arc<dyn Upstream>)
        })
        .collect();
    let gateway = Gateway::with_upstreams(config(), upstreams);
    let done = futures::stream::iter(0..TURNS).map(|number| {
        let gateway = gateway.clone();
        async move {
            let (tenant, conversation) = (number % TENANTS, number / TENANTS % CONVERSATIONS);
            (number, turn(&gateway, tenant, conversation, number).await)
        }
    });
    let ends: Vec<_> = done.buffer_unordered(concurrency).collect().await;
    let mut whole = 0;
    for (number, end) in &ends {
        let mark = format!("mark-{:02}-{:02}-{number:05}", number % TENANTS, number / TENANTS % CONVERSATIONS);
        let Ok(text) = end else { continue };
        let foreign = text.match_indices("mark-").find(|(at, _)| text.get(*at..at + MARK) != Some(&mark));
        assert!(foreign.is_none(), "turn {number} was told of another: {text}");
        whole += usize::from(text.contains(&format!("{mark}.5")));
    }
    let refused = ends.iter().filter_map(|(_, end)| end.as_ref().err()).next();
    assert!(TURNS * 9 / 10 < whole, "{whole} of {TURNS} whole; such as {refused:?}");
    assert!(TURNS / 20 < taken_over.load(Ordering::Relaxed), "turns were taken over: {taken_over:?}");
    let wrong = wrong.lock().unwrap();
    assert!(wrong.is_empty(), "{} requests, such as {:?}", wrong.len(), wrong.first());
    assert_eq!(gateway.open_turns(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_at_a_time() {
    turns_at_once(100).await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_at_a_time() {
    turns_at_once(1000).await;
}
