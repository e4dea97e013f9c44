//! `segue probe` before scripted providers: its numbers, its proposals read back, its words and exit codes.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]

mod support;

use segue::config::{self, Config, Resolver};
use segue::rig::origin::{Origin, Scripts};
use segue::rig::script::{Break, Reject, Script};
use segue::routing::After;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;
use support::program::{scratch, segue, told};

const SECRET: &str = "sk-very-secret";

/// Runs the program while the providers of this test answer.
async fn probe(file: &str, arguments: &[&str]) -> (i32, String, String) {
    let mut command = segue(&["probe", "--config", file]);
    command.args(arguments).env("KEY", SECRET);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let (code, out, err) = told(output);
    assert!(!out.contains(SECRET) && !err.contains(SECRET), "a secret was shown\n{out}\n{err}");
    (code, out, err)
}

fn steady(first: u64, gap: u64) -> Scripts {
    let script = Script::telling("One two three four five six seven eight nine ten");
    Scripts::fixed(script.paced(Duration::from_millis(first), Duration::from_millis(gap)))
}

fn connection(name: &str, dialect: &str, origin: &Origin) -> String {
    let url = origin.base_url();
    format!(
        "[connections.{name}]\ndialect = \"{dialect}\"\nbase_url = \"{url}\"\napi_key = {{ env = \"KEY\" }}\n\
         domains = [\"vendor:{name}\", \"cloud:{name}\", \"region:{name}\"]\n"
    )
}

struct Keys;

impl Resolver for Keys {
    fn env(&self, _: &str) -> Option<String> {
        Some(SECRET.to_owned())
    }

    fn file(&self, _: &str) -> Result<String, String> {
        Err("there are no files".to_owned())
    }
}

fn load(text: &str) -> Config {
    config::load(text, "segue.toml", &Keys).unwrap_or_else(|problems| panic!("{text}\n{problems:?}")).config
}

#[tokio::test]
async fn healthy_targets_are_measured_and_the_proposal_can_be_pasted() {
    let (slow, quick) = (Origin::local(steady(120, 15)).await.unwrap(), Origin::local(steady(20, 5)).await.unwrap());
    let connections = format!("{}{}", connection("slow", "anthropic", &slow), connection("quick", "chat", &quick));
    let level = "[levels.n]\nchain = [{ connection = \"slow\", model = \"s\" }, { connection = \"quick\", model = \"q\" }]\n\
                 retries = 0\ntimeouts = { turn = \"70s\" }\n";
    let file = scratch("probe-healthy", &format!("{connections}{level}"));
    let (code, out, err) = probe(file.to_str().unwrap(), &["-n", "21"]).await;
    assert_eq!(code, 0, "{out}\n{err}");
    assert!(
        err.contains("cost: 2 targets, 44 requests: about 1320 tokens of prompts, at most 2816 of answers"),
        "{err}"
    );
    assert_eq!((slow.records().total(), quick.records().total()), (22, 22), "one each warms the connection");
    assert!(out.contains("slow/s") && out.contains("quick/q") && out.contains("first token p50"), "{out}");

    let (_, toml) = out.split_once("[levels.n]").unwrap();
    let text = format!("{connections}\n[levels.n]{toml}");
    let pasted = load(&text);
    let level = &pasted.levels[0];
    let names: Vec<&str> = level.chain.iter().map(|row| &*row.target.connection).collect();
    assert_eq!(names, ["quick", "slow"], "the quicker one goes first\n{out}");
    for row in &level.chain {
        let clocks = row.timeouts;
        assert!(clocks.first_token >= Duration::from_secs(2), "{out}");
        assert!(clocks.suspect.is_some_and(|s| s >= Duration::from_millis(200) && s < clocks.stall), "{out}");
        assert!(clocks.stall >= Duration::from_millis(1500) && clocks.stall <= clocks.idle, "{out}");
    }
    assert_eq!((level.retries, level.timeouts.turn), (0, Duration::from_secs(70)), "what was there stays");
    let hedge = level.hedge.unwrap();
    assert!(hedge.after == After::Percentile(90.0) && hedge.min <= hedge.max, "{hedge:?}");
    assert!(pasted.connections.iter().all(|c| c.breaker.latency.is_some()), "{out}");
    let file = scratch("probe-pasted", &text);
    let mut check = segue(&["check", "--json", "--config", file.to_str().unwrap()]);
    let (code, checked, _) = told(check.env("KEY", SECRET).output().unwrap());
    assert_eq!(code, 0, "{checked}");
    let found: Value = serde_json::from_str(&checked).unwrap();
    let warned = found["findings"].as_array().unwrap().iter().filter(|f| f["severity"] == "warning");
    let other: Vec<&Value> = warned.filter(|f| !f["message"].to_string().contains("never evaluated")).collect();
    assert!(other.is_empty(), "{other:?}");
}

#[tokio::test]
async fn what_fails_is_counted_by_kind_and_given_up() {
    let words = Script::telling("One two three four five six");
    let limit =
        Reject::Error { status: 429, headers: BTreeMap::from([("retry-after-ms".into(), "30".into())]), wrong: None };
    let long =
        Reject::Error { status: 429, headers: BTreeMap::from([("retry-after".into(), "900".into())]), wrong: None };
    let closed = Reject::Error { status: 401, headers: BTreeMap::new(), wrong: None };
    let calm = words.clone().paced(Duration::from_millis(30), Duration::from_millis(2));
    let flaky = vec![calm.clone(), words.clone().breaking(3, Break::Reset), calm.clone()];
    let origins = [
        Scripts::sequence(vec![calm.clone(), calm.clone(), Script::default().rejecting(limit), calm.clone()]),
        Scripts::sequence(flaky),
        Scripts::fixed(Script::default().rejecting(closed)),
        Scripts::fixed(Script::default().rejecting(long)),
    ];
    let mut started = Vec::new();
    let (mut text, mut chain) = (String::new(), String::new());
    for (name, scripts) in ["limited", "flaky", "closed", "resting"].into_iter().zip(origins) {
        let origin = Origin::local(scripts).await.unwrap();
        text += &connection(name, "chat", &origin);
        chain += &format!("{{ connection = \"{name}\", model = \"m\" }}, ");
        started.push(origin);
    }
    // A port that was free a moment ago.
    let gone = Origin::local(steady(1, 1)).await.unwrap();
    text += &connection("gone", "chat", &gone);
    gone.stop().await;
    text +=
        &format!("[levels.n]\nchain = [{chain}]\n[levels.g]\nchain = [{{ connection = \"gone\", model = \"m\" }}]\n");
    let file = scratch("probe-failing", &text);
    let (code, out, err) = probe(file.to_str().unwrap(), &["-n", "6", "--json", "--concurrency", "5"]).await;
    let told: Value = serde_json::from_str(&out).unwrap_or_else(|why| panic!("{why}: {out}\n{err}"));
    assert_eq!((code, &told["exit"]), (1, &Value::from(1)));
    let of = |name: &str| -> &Value {
        let all = told["targets"].as_array().unwrap();
        all.iter().find(|target| target["connection"] == name).unwrap()
    };
    let counts = |name: &str| {
        let one = of(name);
        ["succeeded", "failed", "rate_limited"].map(|key| one[key].as_u64().unwrap())
    };
    assert_eq!(counts("limited"), [6, 0, 1], "{out}");
    assert_eq!(counts("flaky"), [5, 1, 0], "{out}");
    assert_eq!(of("flaky")["errors"]["Reset"], 1, "{out}");
    assert_eq!(counts("closed"), [0, 3, 0], "a wrong key is not tried for long: {out}");
    assert_eq!(of("closed")["errors"]["Auth"], 3, "{out}");
    assert_eq!(counts("resting"), [0, 0, 1], "{out}");
    assert!(of("resting")["stopped"].as_str().unwrap().contains("900 s, longer than"), "{out}");
    assert_eq!((counts("gone"), &of("gone")["errors"]["Connect"]), ([0, 3, 0], &Value::from(3)), "{out}");
    assert_eq!(of("gone")["first_token_ms"], Value::Null);

    // The clock of this machine may run late, but not early.
    let first = &of("limited")["first_token_ms"];
    let (p50, max) = (first["p50"].as_f64().unwrap(), first["max"].as_f64().unwrap());
    assert!(p50 >= 29.0 && p50 <= max && max < 5000.0, "{first}");
    assert!(of("limited")["total_ms"]["p50"].as_f64().unwrap() >= p50 + 9.0, "{out}");
    assert_eq!(told["proposal"]["toml"], "", "on six answers nothing is proposed");
    let remarks = told["proposal"]["remarks"].to_string();
    assert!(remarks.contains("limited/m: 6 answers, and 20 are needed"), "{remarks}");
}

#[tokio::test]
async fn who_interrupts_gets_what_there_is() {
    let mute = Origin::local(Scripts::fixed(Script::default().rejecting(Reject::NeverAnswers))).await.unwrap();
    let well = Origin::local(steady(1, 1)).await.unwrap();
    let text = format!(
        "{}{}[levels.n]\nchain = [{{ connection = \"mute\", model = \"m\" }}, {{ connection = \"well\", model = \"w\" }}]\n",
        connection("mute", "chat", &mute),
        connection("well", "chat", &well)
    );
    let file = scratch("probe-interrupted", &text);
    let mut command = segue(&["probe", "--json", "-n", "3", "--config", file.to_str().unwrap()]);
    let child = command.env("KEY", SECRET).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id().to_string();
    let patience = tokio::time::timeout(Duration::from_secs(30), async {
        while well.records().total() < 4 || mute.records().total() < 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    patience.await.unwrap();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
    let (code, out, err) = told(output);
    let told: Value = serde_json::from_str(&out).unwrap_or_else(|why| panic!("{why}: {out}\n{err}"));
    let (mute, well) = (&told["targets"][0], &told["targets"][1]);
    assert_eq!((&mute["stopped"], &mute["failed"], code), (&Value::from("interrupted"), &Value::from(0), 0), "{out}");
    // It was asked a fourth time, so three answers had come, one of which does not count.
    assert!(well["succeeded"].as_u64().unwrap() >= 2 && well["failed"] == 0, "{out}");
}

#[test]
fn nonsense_is_refused_before_anything_is_asked() {
    let good = "[connections.a]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
                [connections.idle]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
                [levels.n]\nchain = [{ connection = \"a\", model = \"m\" }]\n";
    let bad = scratch("probe-bad", &good.replace("chain", "chian"));
    let good = scratch("probe-good", good);
    let good = good.to_str().unwrap();
    for (arguments, words) in [
        (vec!["--config", bad.to_str().unwrap()], "did you mean `chain`?"),
        (vec!["--config", good, "--connection", "b"], "there is no connection `b`; there are a, idle"),
        (vec!["--config", good, "--connection", "idle"], "no chain uses idle"),
        (vec!["--config", good, "-n", "0"], "--requests"),
    ] {
        let (code, out, err) = told(segue(&[&["probe"], &arguments[..]].concat()).output().unwrap());
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(words), "{err}");
    }
}
