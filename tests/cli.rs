//! The built program as its users meet it: what it prints, what it answers, and with which code it ends.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use segue::rig::origin::{Origin, Scripts};
use segue::rig::script::Script;
use serde_json::Value;
use std::io::{BufRead, Read};
use std::process::Stdio;
use support::program::{Running, SERVE, Stream, ask, run, scratch, segue, told};

// === demo ===

#[test]
fn the_demo_is_exact_and_says_what_it_measured() {
    let (code, out, err) = run(&["demo", "--fast"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert_eq!(out.matches("\n   exact  ").count(), 4, "{out}");
    for words in [
        "go on without a pau‖se",
        "killed: TCP reset",
        "given up by the gateway: Stalled",
        "overtaken, and hung up on",
        "book_table({\"guests\":4,\"date\":\"2026-10-02\",\"time\":\"19‖",
        "All 4 turns exact",
        "Gaps that the client saw: killed ",
        "segue demo --serve",
    ] {
        assert!(out.contains(words), "`{words}` is missing\n{out}");
    }
    assert!(!out.contains('\u{1b}'), "no colours and no cursor tricks where there is no terminal");
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
}

#[test]
fn the_demo_fits_a_narrow_terminal() {
    let output = segue(&["demo", "--fast"]).env("COLUMNS", "40").output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{out}");
    // The line to type next is never broken.
    let text = out.split("\nNext").next().unwrap();
    let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 40 && line.contains(' ')).collect();
    assert!(long.iter().all(|line| line.split_whitespace().any(|word| word.len() > 20)), "{long:#?}");
}

#[test]
fn the_demo_gives_its_result_to_machines() {
    let (code, out, _) = run(&["demo", "--fast", "--json"]);
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &result["exact"]), (0, &Value::Bool(true)), "{out}");
    let acts = result["acts"].as_array().unwrap();
    let names: Vec<&str> = acts.iter().map(|act| act["act"].as_str().unwrap()).collect();
    assert_eq!(names, ["killed", "stalled", "suspected", "call"]);
    for act in acts {
        assert_eq!(act["problems"], Value::Array(Vec::new()), "{act:#}");
        assert_eq!(act["characters"], act["expected_characters"]);
        assert_eq!(act["turn"]["splices"], 1);
        let times: Vec<f64> = act["timeline"].as_array().unwrap().iter().map(|m| m["ms"].as_f64().unwrap()).collect();
        assert!(times.len() >= 6 && times.is_sorted(), "{times:?}");
    }
    let gap = |act: usize| acts[act]["gap_ms"].as_f64().unwrap();
    // These are the clocks of the levels: nobody can be quicker.
    assert!(gap(1) >= 700.0 && (200.0..gap(1)).contains(&gap(2)), "{} {}", gap(1), gap(2));
    let cut = acts[3]["call_cut_at"].as_str().unwrap();
    assert!(serde_json::from_str::<Value>(cut).is_err(), "{cut}");
}

#[tokio::test]
async fn the_demo_stays_up_to_be_tried() {
    let mut demo = Running::start(&["demo", "--fast", "--serve"], &[], Stream::Out);
    let base_url = demo.find("http://", "/v1") + "/v1";
    demo.until("Ctrl-C stops it");
    for model in ["fault-reset@20", "fault-stall@20", "seam-preamble", "fault-503", "demo"] {
        let (status, answer) = ask(&base_url, model).await;
        assert_eq!(status, 200, "{answer}");
        let message = answer["choices"][0]["message"]["content"].as_str().unwrap();
        assert!(message.starts_with("In a score, the word *segue*") && message.ends_with("wrote about the tempo."));
    }
    demo.until("seam-preamble: complete");
    assert_eq!(demo.stop(), Some(0));
}

// === check ===

#[test]
fn a_good_file_is_drawn() {
    let file = scratch("good", GOOD);
    let (code, out, err) = run(&["check", "--config", file.to_str().unwrap()]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for words in ["├─ first a/m", "└─ then  b/m", "vendor one", "cloud x", "\nok"] {
        assert!(out.contains(words), "`{words}` is missing\n{out}");
    }
    let strict = ["check", "--strict", "--config", file.to_str().unwrap()];
    let (code, out, _) = run(&strict);
    assert_eq!(code, 1, "its fallback was never evaluated: {out}");
    assert!(out.contains("never evaluated as fallbacks of a/m: b/m") && out.contains("ok, 1 warning,"), "{out}");
    let now = segue::fleet::view::rfc3339(std::time::SystemTime::now());
    let score = format!(
        "{{\"version\": 1, \"scores\": [{{\"connection\": \"b\", \"model\": \"m\", \"at\": \"{now}\", \"suite\": \"s\", \
         \"hash\": \"h\", \"answers\": 1, \"kept\": 1, \"errors\": 0, \"unjudged\": 0}}]}}"
    );
    let scores = scratch("good-scores", &score);
    let (code, out, _) = run(&[&strict[..], &["--scores", scores.to_str().unwrap()]].concat());
    assert_eq!(code, 0, "{out}");
}

#[test]
fn warnings_count_if_one_is_strict() {
    let text = GOOD.replace("cloud:y", "cloud:x").replace("[levels.n]", "[levels.n]\naffinity = \"1m\"");
    let file = scratch("warned", &text);
    let (code, out, _) = run(&["check", "--config", file.to_str().unwrap()]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("an outage of `cloud:x` takes out the whole chain"), "{out}");
    let (code, _, _) = run(&["check", "--strict", "--config", file.to_str().unwrap()]);
    assert_eq!(code, 1);
    let (code, out, _) = run(&["check", "--strict", "--json", "--config", file.to_str().unwrap()]);
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &told["exit"], &told["valid"]), (1, &Value::from(1), &Value::Bool(true)));
    assert_eq!(told["levels"][0]["chain"][1]["connection"], "b");
}

#[test]
fn a_wrong_file_is_shown_as_a_compiler_would() {
    let file = scratch("wrong", &GOOD.replace("timeouts = { stall", "timeouts = { stal"));
    let path = file.to_str().unwrap();
    let (code, out, _) = run(&["check", "--config", path]);
    assert_eq!(code, 2);
    for words in ["error: levels.n.timeouts.stal: unknown key", "help: did you mean `stall`?", "^^^^", "1 error"] {
        assert!(out.contains(words), "`{words}` is missing\n{out}");
    }
    assert!(out.contains(&format!("--> {path}:")), "{out}");
    let (code, out, _) = run(&["check", "--json", "--config", path]);
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &told["errors"][0]["key"]), (2, &Value::from("levels.n.timeouts.stal")));
    let (code, _, err) = run(&["serve", "--config", path]);
    assert_eq!(code, 2);
    assert!(err.contains("did you mean `stall`?"), "{err}");
}

#[test]
fn a_secret_in_a_file_is_not_shown() {
    let text = GOOD.replace("dialect = \"chat\"", "dialect = \"chat\"\napi_key = \"sk-hush\"");
    let file = scratch("secret", &text);
    let (code, out, err) = run(&["check", "--config", file.to_str().unwrap()]);
    assert_eq!(code, 2, "{out}");
    assert!(out.contains("api_key") && !out.contains("hush") && !err.contains("hush"), "{out}");
}

#[test]
fn a_file_that_is_missing_is_named() {
    let (code, out, _) = run(&["check", "--config", "no/such/file.toml"]);
    assert_eq!(code, 2);
    assert!(out.contains("no/such/file.toml") && out.contains("there is no such file"), "{out}");
}

// === serve ===

#[test]
fn without_a_configuration_and_keys_it_says_what_to_do() {
    for command in ["serve", "check"] {
        let (code, out, err) = run(&[command]);
        assert_eq!(code, 2);
        let told = format!("{out}{err}");
        for words in ["there is no configuration", "OPENAI_API_KEY", "OLLAMA_HOST", "segue demo"] {
            assert!(told.contains(words), "{told}");
        }
    }
}

#[tokio::test]
async fn one_address_in_the_environment_is_enough() {
    let origin = Origin::local(Scripts::fixed(Script::telling("It is enough."))).await.unwrap();
    let host = origin.addr.to_string();
    let mut serve = Running::start(&SERVE, &[("OLLAMA_HOST", &host)], Stream::Err);
    let base_url = serve.find("clients  ", "/v1") + "/v1";
    serve.until("curl -N http://127.0.0.1:");
    let (status, answer) = ask(&base_url, "normal").await;
    assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &Value::from("It is enough.")), "{answer}");
    assert_eq!(origin.records().total(), 1);
    let (status, answer) = ask(&base_url, "unheard-of").await;
    assert_eq!(status, 404, "{answer}");
    assert_eq!(serve.stop(), Some(0));
}

#[tokio::test]
async fn a_container_needs_no_file() {
    let (code, out, _) = run(&["key", "acme", "--json"]);
    let made: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &made["tenant"]), (0, &Value::from("acme")));
    let keys = scratch("keys", &format!("acme {}\n", made["sha256"].as_str().unwrap()));
    let listen = ("SEGUE_LISTEN", "0.0.0.0:0");
    let told = |more: (&'static str, &str)| {
        let output = segue(&["serve"]).envs(HERE).envs([listen, more]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, err) = told(("NO_COLOR", "1"));
    assert_eq!(code, Some(2));
    assert!(err.contains("SEGUE_KEYS_FILE"), "{err}");
    let (code, err) = told(("SEGUE_ADMIN", "somewhere"));
    assert!(code == Some(2) && err.contains("SEGUE_ADMIN is \"somewhere\": write an IP address"), "{err}");

    let mut command = segue(&["serve"]);
    command.envs(HERE).envs([listen, ("SEGUE_KEYS_FILE", keys.to_str().unwrap())]);
    let mut serve = Running::of(command, Stream::Err);
    let models = serve.find("clients  ", "/v1") + "/v1/models";
    for (key, status) in [(made["key"].as_str().unwrap(), 200), ("another", 401)] {
        let headers =
            http::HeaderMap::from_iter([(http::header::AUTHORIZATION, format!("Bearer {key}").parse().unwrap())]);
        let answer = segue::upstream::client::Client::new().unwrap().get(&models, headers).await.unwrap();
        assert_eq!(answer.status, status);
    }
    assert_eq!(serve.stop(), Some(0));
}

/// A provider that nobody asks, and operators on any port.
const HERE: [(&str, &str); 2] = [("OLLAMA_HOST", "127.0.0.1:9"), ("SEGUE_ADMIN", "127.0.0.1:0")];

#[tokio::test]
async fn a_gateway_that_is_about_to_leave_says_so_before_it_closes_its_door() {
    let origin = Origin::local(Scripts::fixed(Script::telling("Still here."))).await.unwrap();
    let file = scratch(
        "leaving",
        &format!(
            "[server]\ndrain_delay = \"1h\"\n[connections.a]\ndialect = \"chat\"\nbase_url = \"{}\"\n\
             [levels.normal]\nchain = [{{ connection = \"a\", model = \"m\" }}]\n",
            origin.base_url()
        ),
    );
    // `check` takes the file by its name alone.
    assert_eq!(run(&["check", file.to_str().unwrap()]).0, 0);
    let mut serve = Running::start(&[&SERVE[..], &["-c", file.to_str().unwrap()]].concat(), &[], Stream::Err);
    let base_url = serve.find("clients  ", "/v1") + "/v1";
    let ready = serve.find("admin  ", "/api") + "/readyz";
    let client = segue::upstream::client::Client::new().unwrap();
    assert_eq!(client.get(&ready, http::HeaderMap::new()).await.unwrap().status, 200);
    serve.signal("TERM");
    serve.until("about to drain");
    assert_eq!(client.get(&ready, http::HeaderMap::new()).await.unwrap().status, 503);
    assert_eq!(ask(&base_url, "normal").await.0, 200);
    serve.signal("TERM");
    assert_eq!(serve.wait(), Some(130));
}

#[tokio::test]
async fn a_log_that_nobody_reads_holds_up_nobody() {
    let origin = Origin::local(Scripts::fixed(Script::telling("Well."))).await.unwrap();
    let mut command = segue(&SERVE);
    command.envs([("OLLAMA_HOST", origin.addr.to_string().as_str()), ("SEGUE_LOG", "trace")]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.find_map(|line| line.ok().filter(|line| line.contains("  clients  "))).unwrap();
    let base_url = line[line.find("http").unwrap()..].trim().to_owned();
    // Each of these turns leaves many lines, and the pipe holds 64 KiB.
    for _ in 0..100 {
        assert_eq!(ask(&base_url, "normal").await.0, 200);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let left: usize = lines.map_while(Result::ok).map(|line| line.len()).sum();
    assert!(60_000 < left, "only {left} bytes were left unread");
}

#[tokio::test]
async fn the_log_can_be_json_alone() {
    let environment = [("OLLAMA_HOST", "127.0.0.1:9"), ("SEGUE_LOG_FORMAT", "json")];
    let mut serve = Running::start(&SERVE, &environment, Stream::Err);
    let line = serve.until("segue serves");
    let told: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(told["levels"], "normal, high, low, voice");
    assert_eq!(serve.stop(), Some(0));
    assert!(serve.seen.iter().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{:?}", serve.seen);
}

#[test]
fn nonsense_is_refused_with_a_remedy() {
    for (arguments, variable, words) in [
        (&SERVE[..], ("SEGUE_LOG_FORMAT", "xml"), "there are `text` and `json`"),
        (&SERVE[..], ("SEGUE_LOG", "segue=loud"), "SEGUE_LOG"),
        (&["serve", "--listen", "0.0.0.0:0"][..], ("SEGUE_LOG", "warn"), "without tenants everyone who reaches"),
        (&["serve", "--admin", "0.0.0.0:0"][..], ("SEGUE_LOG", "warn"), "admin.token"),
        (&["mock", "--script", "Cargo.toml"][..], ("SEGUE_LOG", "warn"), "Cargo.toml: "),
        (&["demo", "--listen", "0.0.0.0:0"][..], ("SEGUE_LOG", "warn"), "this machine alone"),
        (&["serve", "--listen", "nowhere"][..], ("SEGUE_LOG", "warn"), "such as 127.0.0.1:8080"),
    ] {
        let mut command = segue(arguments);
        command.env("OLLAMA_HOST", "127.0.0.1:9").env(variable.0, variable.1);
        if arguments[0] == "mock" {
            command.current_dir(env!("CARGO_MANIFEST_DIR"));
        }
        let (code, _, err) = told(command.output().unwrap());
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(words), "{err}");
    }
}

#[tokio::test]
async fn a_built_in_provider_needs_no_address() {
    let file = scratch(
        "built-in",
        "[connections.m]\ndialect = \"mock\"\n\
         [levels.n]\nchain = [{ connection = \"m\", model = \"mock+first-1ms+gap-1ms\" }]\n",
    );
    let arguments = [&SERVE[..], &["--config", file.to_str().unwrap()]].concat();
    let mut serve = Running::start(&arguments, &[], Stream::Err);
    let base_url = serve.find("clients  ", "/v1") + "/v1";
    let (status, answer) = ask(&base_url, "n").await;
    assert_eq!(status, 200, "{answer}");
    assert!(answer["choices"][0]["message"]["content"].as_str().unwrap().contains("segue"));
    assert_eq!(serve.stop(), Some(0));
}

#[tokio::test]
async fn the_log_says_who_failed_and_why() {
    let file = scratch(
        "log",
        "[connections.m]\ndialect = \"mock\"\n\
         [levels.cut]\nchain = [{ connection = \"m\", model = \"fault-reset@5\" }, { connection = \"m\", model = \"mock+gap-1ms\" }]\n\
         [levels.key]\nchain = [{ connection = \"m\", model = \"fault-401\" }]\n\
         [levels.whole]\nchain = [{ connection = \"m\", model = \"mock+gap-1ms\" }]\n",
    );
    let arguments = [&SERVE[..], &["--config", file.to_str().unwrap()]].concat();
    let mut serve = Running::start(&arguments, &[], Stream::Err);
    let base_url = serve.find("clients  ", "/v1") + "/v1";
    assert_eq!(ask(&base_url, "whole").await.0, 200);
    assert_eq!(ask(&base_url, "cut").await.0, 200);
    let line = serve.until("turn survived");
    for words in ["INFO", "level=cut", "splices=1", "m/fault-reset@5 Reset: ", "; m/mock+gap-1ms ok"] {
        assert!(line.contains(words), "`{words}` is missing: {line}");
    }
    assert!(!serve.seen.iter().any(|line| line.contains("level=whole")), "{:?}", serve.seen);
    let (status, answer) = ask(&base_url, "key").await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(status == 502 && message.contains("m/fault-401: Incorrect API key"), "{answer}");
    assert!(
        serve.until("the circuit of m/fault-401 is open").contains("refuses the key or the model"),
        "{:?}",
        serve.seen
    );
    let line = serve.until("turn failed");
    assert!(line.contains("WARN") && line.contains("attempts=\"m/fault-401 Auth (401)\""), "{line}");
    assert!(!line.contains("Incorrect"), "who refuses a key may repeat it: {line}");
    // The client's own mistake is nobody's failure.
    assert_eq!(ask(&base_url, "unheard-of").await.0, 404);
    assert_eq!(serve.stop(), Some(0));
    assert!(!serve.seen.iter().any(|line| line.contains("unheard-of")), "{:?}", serve.seen);
}

// === mock ===

#[tokio::test]
async fn the_mock_answers_and_breaks_on_request() {
    let mut mock = Running::start(&["mock", "--listen", "127.0.0.1:0"], &[], Stream::Err);
    let base_url = mock.find("listens at ", " ");
    let (status, answer) = ask(&base_url, "mock+first-1ms+gap-1ms").await;
    assert_eq!(status, 200);
    assert!(answer["choices"][0]["message"]["content"].as_str().unwrap().contains("*segue*"), "{answer}");
    assert_eq!(ask(&base_url, "fault-429").await.0, 429);
    let (status, answer) = ask(&base_url, "fault-explode").await;
    assert_eq!(status, 404);
    assert!(answer["error"]["message"].as_str().unwrap().contains("there is no such fault"), "{answer}");
    assert_eq!(mock.stop(), Some(0));
}

#[tokio::test]
async fn the_mock_does_what_a_script_says() {
    let file = scratch("script", "content = { text = \"As the script says.\" }\n");
    let mut mock =
        Running::start(&["mock", "--listen", "127.0.0.1:0", "--script", file.to_str().unwrap()], &[], Stream::Err);
    let base_url = mock.find("listens at ", " ");
    let (_, answer) = ask(&base_url, "any").await;
    assert_eq!(answer["choices"][0]["message"]["content"], "As the script says.");
    assert_eq!(mock.stop(), Some(0));
}

// === all ===

#[test]
fn every_command_helps_with_examples() {
    let (code, out, _) = run(&["--help"]);
    assert_eq!(code, 0);
    assert!(out.contains("Examples:"));
    for command in ["demo", "serve", "check", "probe", "eval", "mock", "completions"] {
        assert!(out.contains(&format!("  {command} ")), "{out}");
        let (code, help, _) = run(&[command, "--help"]);
        assert_eq!(code, 0);
        assert!(help.contains(&format!("Examples:\n  segue {command}")), "{help}");
        assert!(help.contains("Exit codes:"), "{help}");
    }
    let (_, help, _) = run(&["mock", "--help"]);
    assert!(help.contains("fault-stall@N") && help.contains("restart-diverges"), "{help}");
}

#[test]
fn shells_get_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, out, _) = run(&["completions", shell]);
        assert_eq!(code, 0);
        assert!(
            out.contains("segue") && out.contains("strict") && out.contains("demo") && out.contains("max-tokens"),
            "{shell}"
        );
    }
    let (code, _, err) = run(&["completions", "tcsh"]);
    assert_eq!(code, 2);
    assert!(err.contains("bash"), "{err}");
}

#[test]
fn a_reader_who_leaves_is_no_mishap() {
    let mut child = segue(&["completions", "bash"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    child.wait().unwrap();
    assert_eq!(err, "");
}

const GOOD: &str = r#"
[connections.a]
dialect = "chat"
base_url = "http://127.0.0.1:1/v1"
domains = ["vendor:one", "cloud:x", "region:r"]

[connections.b]
dialect = "anthropic"
base_url = "http://127.0.0.1:2"
domains = ["vendor:two", "cloud:y", "region:s"]

[levels.n]
chain = [{ connection = "a", model = "m" }, { connection = "b", model = "m" }]
timeouts = { stall = "3s" }
"#;
