//! The continuity benchmark against systems that are known: gateways that fail over in three ways, and relays that are
//! broken on purpose, each of which must be found.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test's panic is its report")]

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use futures::future::join_all;
use segue::bench::continuity::account::Witness;
use segue::bench::continuity::answer::PROVIDERS;
use segue::bench::continuity::inject::Injected;
use segue::bench::continuity::listener::Place;
use segue::bench::continuity::manifest::{Manifest, Shape};
use segue::bench::continuity::player::Player;
use segue::bench::continuity::recall::{Pace, Recall};
use segue::bench::continuity::record::{End, Heard, Record};
use segue::bench::continuity::run::{self, Extent};
use segue::bench::continuity::suite::{self, Conversation};
use segue::bench::continuity::systems::{Serving, System};
use segue::config;
use segue::gateway::Gateway;
use segue::upstream::client::Client;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Far longer than anything takes that is not meant to time out.
const CLOCK: Duration = Duration::from_millis(1500);

/// Conversations of a trial.
const COUNT: usize = 12;

/// A world with the built-in providers and some of the suite's conversations.
struct World {
    suite: Arc<[Conversation]>,
    recall: Arc<Recall>,
}

impl World {
    async fn new(count: usize) -> Self {
        // Some of each length and fact type.
        let suite: Arc<[Conversation]> = suite::committed().into_iter().step_by(7).take(count).collect();
        let pace = Pace { first: Duration::from_millis(2), gap: Duration::ZERO };
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let recall = Recall::start(&suite, pace, [anywhere; 4]).await.expect("ports");
        Self { suite, recall: Arc::new(recall) }
    }

    fn manifest(&self, shape: Shape) -> Arc<Manifest> {
        Arc::new(Manifest::draw(shape, 42, &self.suite, &PROVIDERS).expect("a manifest"))
    }

    fn player(&self, system: &str, url: &str, order: bool) -> Player {
        Player {
            system: system.to_owned(),
            place: Place::new(url, "bench", None, Duration::from_secs(10)).expect("a client"),
            witness: Arc::clone(&self.recall) as Arc<dyn Witness>,
            scripted: true,
            order: if order { PROVIDERS.map(str::to_owned).to_vec() } else { Vec::new() },
            stateless: false,
            retries: 5,
            cooldown: Duration::from_secs(5),
        }
    }

    async fn serve(&self, system: System) -> Serving {
        let gateway = system.gateway(&self.recall.places(), CLOCK).expect("a gateway");
        Serving::start(gateway).await.expect("a port")
    }

    async fn play(&self, player: &Player, shape: Option<Shape>) -> Vec<Record> {
        let manifest = shape.map(|shape| self.manifest(shape));
        self.recall.play(manifest.as_deref());
        run::play(player, &self.suite, manifest.as_ref(), Extent { runs: 1, concurrency: 20 }, || {}).await
    }

    fn kept(&self, record: &Record) -> bool {
        let fact = &self.suite.iter().find(|c| c.id == record.conversation).unwrap().expected_fact;
        record.turns.last().unwrap().text.contains(fact)
    }

    fn all_kept(&self, records: &[Record]) -> bool {
        records.len() == self.suite.len() && records.iter().all(|record| self.kept(record))
    }
}

fn turns(records: &[Record]) -> impl Iterator<Item = &Heard> {
    records.iter().flat_map(|record| &record.turns)
}

fn struck(records: &[Record]) -> Vec<&Heard> {
    turns(records).filter(|turn| turn.planned.is_some()).inspect(|turn| assert!(turn.struck, "{turn:#?}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_failures_every_system_keeps_everything() {
    let world = World::new(8).await;
    for system in System::ALL {
        let serving = world.serve(system).await;
        let records = world.play(&world.player(system.name(), &serving.url, true), None).await;
        assert!(world.all_kept(&records), "{records:#?}");
        for turn in turns(&records) {
            assert!(turn.seam.unwrap().is_whole() && turn.end == End::Finished && !turn.struck, "{turn:#?}");
            assert_eq!((turn.depth, turn.gap_ms, turn.client_retries, turn.provider_requests), (0, None, 0, 1));
            assert_eq!((turn.history_arrived, turn.served_by.as_deref()), (Some(true), Some("amber")));
            assert!(turn.first_ms.unwrap() <= turn.total_ms && 0.0 < turn.provider_ms && 40 <= turn.tokens[1]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn turn_level_failures_cost_the_stateless_system_its_memory_and_the_others_nothing() {
    let trials = System::ALL.map(|system| trial(system, Shape::Turn));
    for (world, system, records) in join_all(trials).await {
        let kept = records.iter().filter(|record| world.kept(record)).count();
        assert_eq!(kept, if system == System::Stateless { 0 } else { COUNT }, "{}", system.name());
        for turn in struck(&records) {
            assert!(turn.seam.unwrap().is_whole() && turn.end == End::Finished && turn.depth == 1, "{turn:#?}");
            assert_eq!(turn.history_arrived, Some(system != System::Stateless));
            assert_ne!(turn.served_by.as_deref(), Some("amber"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_in_mid_turn_leave_no_trace_with_splice() {
    let shapes = [Shape::MidTurn, Shape::Rolling, Shape::Repeated];
    for (world, _, records) in join_all(shapes.map(|shape| trial(System::Splice, shape))).await {
        assert!(world.all_kept(&records));
        for turn in struck(&records) {
            assert!(turn.seam.unwrap().is_whole() && turn.end == End::Finished, "{turn:#?}");
            let within = turn.planned.is_some_and(|mode| mode.is_mid_turn());
            assert_eq!((turn.client_retries, turn.gap_ms.is_some()), (0, within), "{turn:#?}");
            assert!(turn.depth < turn.provider_requests as usize, "{turn:#?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_in_mid_turn_are_heard_where_a_client_must_ask_again() {
    let trials = [
        trial(System::History, Shape::MidTurn),
        trial(System::History, Shape::Rolling),
        trial(System::Stateless, Shape::MidTurn),
    ];
    for (world, system, records) in join_all(trials).await {
        let kept = records.iter().filter(|record| world.kept(record)).count();
        assert_eq!(kept, if system == System::Stateless { 0 } else { COUNT }, "who asks again is told again");
        for turn in struck(&records).into_iter().filter(|turn| turn.planned.is_some_and(|mode| mode.is_mid_turn())) {
            assert!(0 < turn.client_retries && 0 < turn.seam.unwrap().repeated, "{turn:#?}");
            assert_eq!((turn.seam.unwrap().foreign, turn.seam.unwrap().lost), (0, 0), "{turn:#?}");
            assert!(turn.gap_ms.is_some());
        }
    }
}

/// One system under one shape, in a world of its own.
async fn trial(system: System, shape: Shape) -> (World, System, Vec<Record>) {
    let world = World::new(COUNT).await;
    let serving = world.serve(system).await;
    let mut player = world.player(system.name(), &serving.url, true);
    player.stateless = system == System::Stateless;
    let records = world.play(&player, Some(shape)).await;
    (world, system, records)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_depend_on_time_is_the_same_each_time() {
    let trials = join_all([(); 2].map(|()| trial(System::Splice, Shape::Rolling))).await;
    let [one, other] = [0, 1].map(|index| timeless(trials[index].2.clone()));
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(serde_json::to_string(one).unwrap(), serde_json::to_string(other).unwrap());
    }
}

/// Records without their times, and without how far a provider came that broke off: a reset takes what nobody has read.
fn timeless(mut records: Vec<Record>) -> Vec<Record> {
    for turn in records.iter_mut().flat_map(|record| &mut record.turns) {
        turn.first_ms = turn.first_ms.map(|_| 0.0);
        turn.gap_ms = turn.gap_ms.map(|_| 0.0);
        (turn.total_ms, turn.silence_ms, turn.provider_ms) = (0.0, 0.0, 0.0);
        if turn.struck {
            (turn.text, turn.tokens) = (String::new(), [0, 0]);
        }
    }
    records
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_played_on_providers_that_know_nothing_of_them() {
    let world = World::new(8).await;
    let injected = Arc::new(Injected::new(&world.suite));
    let places: String = world
        .recall
        .places()
        .iter()
        .map(|(name, url)| format!("[connections.{name}]\ndialect = \"chat\"\nbase_url = \"{url}\"\n"))
        .collect();
    let chain = PROVIDERS.map(|name| format!("{{ connection = \"{name}\", model = \"recall\" }}")).join(", ");
    let text = format!(
        "{places}[levels.bench]\nchain = [{chain}]\nretries = 0\ntimeouts = {{ first_token = \"1500ms\", stall = \"1500ms\" }}\n"
    );
    let mut config = config::load(&text, "segue.toml", &NoFiles).expect("a configuration").config;
    System::Splice.apply(&mut config);
    let faults = Arc::clone(&injected.faults);
    let gateway = Gateway::decorated(config, move |name, upstream| faults.around(name, upstream)).expect("a gateway");
    let serving = Serving::start(gateway).await.expect("a port");
    let mut player = world.player("splice", &serving.url, true);
    player.witness = Arc::clone(&injected) as Arc<dyn Witness>;
    for shape in [Shape::MidTurn, Shape::Rolling] {
        let manifest = world.manifest(shape);
        injected.play(Some(Arc::clone(&manifest)));
        let extent = Extent { runs: 1, concurrency: 8 };
        let records = run::play(&player, &world.suite, Some(&manifest), extent, || {}).await;
        assert!(world.all_kept(&records), "{shape:?}");
        for turn in struck(&records) {
            assert!(turn.seam.unwrap().is_whole() && turn.end == End::Finished, "{shape:?} {turn:#?}");
            assert!(turn.history_arrived == Some(true) && 0 < turn.depth && turn.client_retries == 0, "{turn:#?}");
        }
    }
}

struct NoFiles;

impl config::Resolver for NoFiles {
    fn env(&self, _: &str) -> Option<String> {
        None
    }

    fn file(&self, _: &str) -> Result<String, String> {
        Err("files are not read here".to_owned())
    }
}

// === the command ===

fn segue(arguments: &[&str]) -> std::process::Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_segue"));
    command.args(["bench", "continuity"]).args(arguments).output().expect("the program runs")
}

#[test]
fn the_same_seed_gives_the_same_deterministic_json() {
    let directory = std::env::temp_dir().join(format!("segue-continuity-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let run = |name: &str| -> Value {
        let path = directory.join(name);
        let path = path.to_str().unwrap();
        let out = segue(&[
            "--first",
            "3",
            "--runs",
            "1",
            "--systems",
            "history,splice",
            "--shapes",
            "rolling",
            "--json",
            path,
        ]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let (one, other) = std::thread::scope(|scope| {
        let one = scope.spawn(|| run("one.json"));
        let other = run("other.json");
        (one.join().unwrap(), other)
    });
    assert_eq!(one["deterministic"].to_string(), other["deterministic"].to_string());
    assert_eq!(one["deterministic"]["trials"].as_array().map(Vec::len), Some(1));
    let compared = segue(&[
        "--compare",
        directory.join("one.json").to_str().unwrap(),
        directory.join("other.json").to_str().unwrap(),
    ]);
    assert!(compared.status.success());
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_manifest_can_be_written_and_what_is_wrong_is_said() {
    let path = std::env::temp_dir().join(format!("segue-manifest-{}.json", std::process::id()));
    let path = path.to_str().unwrap();
    let out = segue(&["--first", "4", "--shapes", "rolling", "--draw", path]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let manifest = Manifest::read(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!((manifest.shape, manifest.plans.len()), (Shape::Rolling, 4));
    // The manifest plans conversations that are not played.
    let out = segue(&["--first", "2", "--manifest", path]);
    assert_eq!(out.status.code(), Some(2), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(String::from_utf8_lossy(&out.stderr).contains("is no conversation of the suite"));
    std::fs::remove_file(path).unwrap();
}

// === relays that are broken on purpose ===

#[derive(Clone, Copy, Debug, PartialEq)]
enum Breakage {
    Nothing,
    DropsHistory,
    DoublesAWord,
    MixesConversations,
    FakesAFinish,
    ForgetsTheTerminator,
    EndsWithoutAWord,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_relay_is_found_out_and_called_by_its_name() {
    let world = World::new(6).await;
    let serving = world.serve(System::Splice).await;
    let play = async |breakage| {
        let url = relay(serving.url.clone(), breakage).await;
        let mut player = world.player("broken", &url, false);
        player.retries = 0;
        world.play(&player, None).await
    };
    let records = play(Breakage::Nothing).await;
    assert!(world.all_kept(&records) && turns(&records).all(|turn| turn.seam.unwrap().is_whole()));

    let records = play(Breakage::DropsHistory).await;
    assert!(records.iter().all(|record| !world.kept(record)));
    for record in &records {
        let probe = record.turns.last().unwrap();
        assert_eq!((probe.history_arrived, probe.seam.unwrap().is_whole()), (Some(false), true), "{probe:#?}");
    }
    for turn in turns(&play(Breakage::DoublesAWord).await) {
        let seam = turn.seam.unwrap();
        assert!(0 < seam.repeated && (seam.lost, seam.foreign, seam.faked) == (0, 0, false), "{turn:#?}");
    }
    let records = play(Breakage::MixesConversations).await;
    assert!(3 < turns(&records).filter(|turn| 0 < turn.seam.unwrap().foreign).count());
    for turn in turns(&records) {
        let seam = turn.seam.unwrap();
        assert_eq!((seam.lost, seam.repeated, seam.faked), (0, 0, false), "{turn:#?}");
    }
    for turn in turns(&play(Breakage::FakesAFinish).await) {
        let seam = turn.seam.unwrap();
        assert!(seam.faked && 0 < seam.lost && (seam.repeated, seam.foreign) == (0, 0), "{turn:#?}");
        assert_eq!(turn.end, End::Finished);
    }
    for turn in turns(&play(Breakage::ForgetsTheTerminator).await) {
        assert!(turn.end == End::Cut && turn.seam.unwrap().is_whole(), "{turn:#?}");
    }
    for turn in turns(&play(Breakage::EndsWithoutAWord).await) {
        assert!(turn.end == End::Cut && 0 < turn.seam.unwrap().lost && !turn.seam.unwrap().faked, "{turn:#?}");
    }
}

/// A relay before `upstream` that breaks what it passes on; gives its address.
async fn relay(upstream: String, breakage: Breakage) -> String {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let client = Client::new().expect("a client");
    // What was said last, and in which conversation.
    let said: Arc<Mutex<(String, String)>> = Arc::default();
    let answer = move |body: Bytes| passed(client.clone(), upstream.clone(), breakage, body, Arc::clone(&said));
    let routes = axum::Router::new().route("/v1/chat/completions", axum::routing::post(answer));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    url
}

async fn passed(
    client: Client,
    upstream: String,
    breakage: Breakage,
    body: Bytes,
    said: Arc<Mutex<(String, String)>>,
) -> Response {
    let mut body: Value = serde_json::from_slice(&body).expect("JSON");
    let messages = body["messages"].as_array_mut().expect("messages");
    let conversation = messages[0]["content"].as_str().unwrap_or_default().to_owned();
    if breakage == Breakage::DropsHistory {
        messages.drain(..messages.len() - 1);
    }
    let url = format!("{upstream}/chat/completions");
    let answer = client.post(&url, Default::default(), body.to_string()).await.expect("an answer");
    let mut count = 0;
    let mut over = false;
    let events = answer.events().map(move |event| {
        let data = event.expect("an event").data;
        let mut chunk: Value = serde_json::from_str(&data).unwrap_or_default();
        let text = chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned();
        if over {
            return Ok::<_, std::io::Error>(String::new());
        }
        if text.is_empty() {
            let done = data == "[DONE]" && breakage == Breakage::ForgetsTheTerminator;
            return Ok(if done { String::new() } else { format!("data: {data}\n\n") });
        }
        count += 1;
        let mut out = text.clone();
        let before = {
            let mut said = said.lock().unwrap();
            // Words around a fact are everybody's; the others are of one answer.
            if text.starts_with(' ') && text.contains('-') {
                let words = text.split(' ').nth(1).unwrap_or_default();
                std::mem::replace(&mut *said, (conversation.clone(), format!(" {words}")))
            } else {
                said.clone()
            }
        };
        match breakage {
            Breakage::DoublesAWord if count == 9 => out = format!("{text}{text}"),
            Breakage::MixesConversations if before.0 != conversation => out.push_str(&before.1),
            Breakage::FakesAFinish if count == 9 => {
                over = true;
                chunk["choices"][0]["finish_reason"] = json!("stop");
                return Ok(format!("data: {chunk}\n\ndata: [DONE]\n\n"));
            }
            Breakage::EndsWithoutAWord if count == 9 => over = true,
            _ => {}
        }
        chunk["choices"][0]["delta"]["content"] = json!(out);
        Ok(format!("data: {chunk}\n\n"))
    });
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
}
