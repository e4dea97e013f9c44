//! A new configuration while turns are open: keys rotate, connections keep their health, and a file with mistakes changes
//! nothing.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]

use bytes::Bytes;
use http::HeaderMap;
use segue::chat::DialectId;
use segue::config::{self, Config};
use segue::dialect;
use segue::gateway::Gateway;
use segue::gateway::caller::Caller;
use segue::gateway::drive::{Drive, Start};
use segue::gateway::reload::NotReloaded;
use segue::health::breaker::Force;
use segue::rig::inside::Inside;
use segue::rig::origin::Scripts;
use segue::rig::script::Script;
use segue::upstream::Upstream;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn text(key: &str, first: &str, limits: &str) -> String {
    let digest: String = Sha256::digest(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "[connections.a]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
         [connections.b]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n{limits}\n\
         [levels.main]\nchain = [{{ connection = \"{first}\", model = \"m\" }}]\n\
         [tenants.t]\nkeys = [{{ sha256 = \"{digest}\" }}]\n"
    )
}

fn load(text: &str) -> Result<Config, Vec<config::Problem>> {
    Ok(config::load(text, "segue.toml", &config::Nothing)?.config)
}

/// A gateway that reads what is in `file`.
fn house(file: &Arc<Mutex<String>>) -> (Gateway, HashMap<&'static str, Inside>) {
    let script = |words: &str| Script::telling(words).paced(Duration::from_secs(1), Duration::from_secs(1));
    let providers: HashMap<&str, Inside> = [("a", "One two three four"), ("b", "Five six seven eight")]
        .map(|(name, words)| (name, Inside::new(Scripts::fixed(script(words)), 0)))
        .into();
    let upstreams: HashMap<Arc<str>, Arc<dyn Upstream>> =
        providers.iter().map(|(n, p)| ((*n).into(), Arc::new(p.clone()) as Arc<dyn Upstream>)).collect();
    let config = load(&file.lock().unwrap()).unwrap();
    let gateway = Gateway::with_upstreams(config, upstreams);
    let file = Arc::clone(file);
    gateway.reload_from(Box::new(move |_| load(&file.lock().unwrap())));
    (gateway, providers)
}

async fn begin(gateway: &Gateway, caller: &Caller) -> Drive {
    let body = r#"{"model":"main","stream":true,"messages":[{"role":"user","content":"go"}]}"#;
    let request =
        dialect::client(DialectId::Chat).unwrap().parse(&HeaderMap::new(), &Bytes::from_static(body.as_bytes()));
    let mut drive = gateway.begin(caller, request.unwrap()).await.unwrap_or_else(|refusal| panic!("{refusal:?}"));
    assert!(matches!(drive.start(None).await, Start::Going));
    drive
}

async fn rest(mut drive: Drive) -> String {
    let mut all = Vec::new();
    while let Some(bytes) = poll_fn(|cx| drive.poll_frame(cx)).await {
        all.extend_from_slice(&bytes);
    }
    String::from_utf8(all).unwrap()
}

#[tokio::test(start_paused = true)]
async fn keys_rotate_and_open_turns_go_on() {
    let file = Arc::new(Mutex::new(text("old", "a", "")));
    let (gateway, providers) = house(&file);
    let caller = gateway.authorize(Some("old")).unwrap();
    assert!(gateway.authorize(Some("new")).is_err());
    let drive = begin(&gateway, &caller).await;
    *file.lock().unwrap() = text("new", "b", "");
    gateway.reload().unwrap();
    assert!(gateway.authorize(Some("old")).is_err(), "the old key is refused at once");
    let told = rest(drive).await;
    assert!(told.contains("four") && told.ends_with("[DONE]\n\n"), "{told}");
    let caller = gateway.authorize(Some("new")).unwrap();
    let told = rest(begin(&gateway, &caller).await).await;
    assert!(told.contains("eight"), "the new chain: {told}");
    assert_eq!((providers["a"].asked(), providers["b"].asked()), (1, 1));
    assert_eq!(gateway.open_turns(), 0);
}

#[tokio::test(start_paused = true)]
async fn connections_that_did_not_change_keep_their_circuits() {
    let file = Arc::new(Mutex::new(text("k", "a", "")));
    let (gateway, _) = house(&file);
    let caller = gateway.authorize(Some("k")).unwrap();
    rest(begin(&gateway, &caller).await).await;
    gateway.fleet().force("a", None, Force::Open);
    gateway.fleet().force("b", Some("m"), Force::Open);
    *file.lock().unwrap() = text("k", "a", "limits = { rpm = 60 }");
    let changes = gateway.reload().unwrap();
    assert_eq!(changes.connections, ["b".into()], "b has other limits now");
    assert!(changes.removed.is_empty() && changes.needs_restart.is_empty());
    let circuits = gateway.fleet().circuits(tokio::time::Instant::now().into_std());
    let forced: Vec<_> = circuits.iter().map(|c| (&*c.connection, c.forced)).collect();
    assert_eq!(forced, [("a", Some(Force::Open))], "a is as it was, b begins anew");
    assert_eq!(gateway.fleet().journal(0).len(), 2, "the journal goes on");
}

#[tokio::test(start_paused = true)]
async fn a_file_with_mistakes_changes_nothing_and_is_told_all_of_them() {
    let file = Arc::new(Mutex::new(text("k", "a", "")));
    let (gateway, _) = house(&file);
    let before = gateway.config();
    *file.lock().unwrap() = text("new", "nobody", "limit = { rpm = 60 }");
    let Err(wrong @ NotReloaded::Wrong(_)) = gateway.reload() else { panic!("it was taken") };
    let said = wrong.to_string();
    assert!(said.contains("nobody") && said.contains("limits") && said.contains("segue.toml:"), "{said}");
    assert_eq!(*gateway.config(), *before);
    assert!(gateway.authorize(Some("k")).is_ok());
}

#[tokio::test]
async fn without_a_source_there_is_no_reload() {
    let gateway = Gateway::with_upstreams(load(&text("k", "a", "")).unwrap(), HashMap::new());
    assert_eq!(gateway.reload(), Err(NotReloaded::NoSource));
}
