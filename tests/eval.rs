//! `segue eval` before scripted providers: scores, the file of them, and what `segue check` makes of it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]

mod support;

use segue::bench::continuity::judge::model::EXAMPLES;
use segue::rig::origin::{Inquiry, Origin, Scripts};
use segue::rig::script::{Reject, Script};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use support::program::{PATIENCE, segue, told};

const SECRET: &str = "sk-very-secret";

/// Runs the program while the providers of this test answer.
async fn run(command: &str, file: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut segue = segue(&[command, "--config", file.to_str().unwrap()]);
    segue.args(arguments).env("KEY", SECRET);
    let output = tokio::task::spawn_blocking(move || segue.output().unwrap()).await.unwrap();
    let (code, out, err) = told(output);
    assert!(!out.contains(SECRET) && !err.contains(SECRET), "a secret was shown\n{out}\n{err}");
    (code, out, err)
}

/// An empty directory of this test.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("eval-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// A provider that repeats the first message of a conversation, and so all that was told in it.
fn remembering() -> Scripts {
    Scripts::with(|inquiry| Ok(Arc::new(Script::telling(first(inquiry)))))
}

fn first<'a>(inquiry: &Inquiry<'a>) -> &'a str {
    let messages = &inquiry.body["messages"];
    assert!(messages.as_array().unwrap().len() >= 7 && inquiry.body["stream"] == true, "the whole history comes");
    let content = &messages[0]["content"];
    content.as_str().or_else(|| content[0]["text"].as_str()).unwrap()
}

fn rejecting(status: u16, headers: &[(&str, &str)]) -> Script {
    let headers: BTreeMap<String, String> = headers.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    Script::default().rejecting(Reject::Error { status, headers, wrong: None })
}

/// A configuration with one chain of these providers, in `directory`.
async fn chain(directory: &Path, providers: Vec<(&str, &str, Scripts)>) -> (PathBuf, Vec<Origin>) {
    let (mut text, mut rows, mut origins) = (String::new(), String::new(), Vec::new());
    for (name, dialect, scripts) in providers {
        let origin = Origin::local(scripts).await.unwrap();
        let url = origin.base_url();
        text += &format!(
            "[connections.{name}]\ndialect = \"{dialect}\"\nbase_url = \"{url}\"\napi_key = {{ env = \"KEY\" }}\n\
             domains = [\"vendor:{name}\", \"cloud:{name}\", \"region:{name}\"]\n"
        );
        rows += &format!("{{ connection = \"{name}\", model = \"m\" }}, ");
        origins.push(origin);
    }
    text += &format!("[levels.n]\nchain = [{rows}]\n[levels.again]\nchain = [{rows}]\n");
    let file = directory.join("segue.toml");
    fs::write(&file, text).unwrap();
    (file, origins)
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

/// What `check` warns of and notes about evaluations.
async fn checked(file: &Path) -> Vec<(String, String)> {
    let (code, out, err) = run("check", file, &["--json"]).await;
    assert_eq!(code, 0, "{out}{err}");
    let told = json_of(&out);
    let all = told["findings"].as_array().unwrap().iter().map(|f| {
        let [subject, message, severity] = ["subject", "message", "severity"].map(|key| f[key].as_str().unwrap());
        (severity.to_owned(), format!("{subject}: {message}"))
    });
    all.filter(|(_, told)| told.contains("evaluated") || told.contains("suite") || told.contains("changed")).collect()
}

#[tokio::test]
async fn every_target_is_scored_and_check_reads_the_scores() {
    let directory = directory("scored");
    let flaky = Scripts::with(|inquiry| {
        let limit = rejecting(429, &[("retry-after-ms", "20")]);
        Ok(Arc::new(match inquiry.number {
            1 | 4 => rejecting(500, &[]),
            7 => limit,
            _ => Script::telling(first(inquiry)),
        }))
    });
    let providers = vec![
        ("good", "chat", remembering()),
        ("forgetful", "anthropic", Scripts::fixed(Script::telling("I do not think that you told me."))),
        ("flaky", "chat", flaky),
        ("closed", "chat", Scripts::fixed(rejecting(401, &[]))),
    ];
    let (file, origins) = chain(&directory, providers).await;
    let never = |level: &str| {
        format!("levels.{level}: never evaluated as fallbacks of good/m: forgetful/m, flaky/m and closed/m")
    };
    let warning = |told: String| ("warning".to_owned(), told);
    assert_eq!(checked(&file).await, [warning(never("n")), warning(never("again"))]);

    let arguments = ["--sample", "20", "--json"];
    let (code, out, err) = run("eval", &file, &arguments).await;
    assert_eq!(code, 1, "one gave no answer\n{out}\n{err}");
    assert!(err.contains("cost: 4 targets, 80 requests (20 questions of continuity-v1): about "), "{err}");
    let requests: Vec<u64> = origins.iter().map(|origin| origin.records().total()).collect();
    assert_eq!(requests, [20, 20, 21, 3], "each once, though it stands in two chains");
    let told = json_of(&out);
    let of = |name: &str| {
        let all = told["targets"].as_array().unwrap();
        all.iter().find(|target| target["connection"] == name).unwrap().clone()
    };
    let counts = |name: &str| [&of(name)["score"]["hits"], &of(name)["score"]["of"]].map(Value::as_u64);
    assert_eq!(counts("good"), [Some(20), Some(20)], "{out}");
    assert_eq!(counts("forgetful"), [Some(0), Some(20)], "{out}");
    assert_eq!(of("forgetful")["missed"].as_array().unwrap().len(), 20);
    assert_eq!(counts("flaky"), [Some(18), Some(18)], "errors are no answers: {out}");
    assert_eq!((&of("flaky")["errors"]["ServerError"], &of("flaky")["rate_limited"]), (&json!(2), &json!(1)), "{out}");
    assert_eq!((counts("closed"), &of("closed")["errors"]["Auth"]), ([None, None], &json!(3)), "{out}");
    assert_eq!((&of("good")["said_model"], &of("good")["levels"]), (&json!("m"), &json!(["n", "again"])), "{out}");
    let kinds = of("good")["kinds"].as_object().unwrap().clone();
    assert!(kinds.len() == 5 && kinds.values().all(|share| share["of"] == 4), "{kinds:?}");

    let kept = json_of(&fs::read_to_string(directory.join("segue-scores.json")).unwrap());
    let scores = kept["scores"].as_array().unwrap();
    assert_eq!((scores.len(), &scores[0]["suite"], &scores[0]["kept"]), (4, &json!("continuity-v1"), &json!(20)));
    // Wilson's interval of 20 of 20.
    assert!((scores[0]["interval"][0].as_f64().unwrap() - 0.8389).abs() < 1e-4, "{kept}");
    let worse = |level: &str| {
        let told = "forgetful/m kept 0 % in the suite continuity-v1, good/m 100 %: answers get worse when it stands in";
        ("note".to_owned(), format!("levels.{level}: {told}"))
    };
    let mute = |level: &str| {
        let day = &scores[0]["at"].as_str().unwrap()[..10];
        warning(format!("levels.{level}: no answer came when last evaluated: closed/m ({day})"))
    };
    assert_eq!(checked(&file).await, [worse("n"), mute("n"), worse("again"), mute("again")]);

    // Once more, of some: added to what is there, and held against it.
    let (code, out, err) = run("eval", &file, &["--sample", "20", "--target", "good/m", "flaky/m"]).await;
    assert_eq!(code, 0, "{out}\n{err}");
    let line = out.lines().find(|line| line.starts_with("good/m")).unwrap();
    assert_eq!(line.matches("100.0 %").count(), 3, "the score, its interval's end, and the score before: {line}");
    let kept = json_of(&fs::read_to_string(directory.join("segue-scores.json")).unwrap());
    assert_eq!(kept["scores"].as_array().unwrap().len(), 6, "{kept}");
    let names: Vec<String> =
        fs::read_dir(&directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.len(), 2, "nothing is left beside it: {names:?}");
}

#[tokio::test]
async fn scores_that_are_old_or_of_another_model_are_warned_of() {
    let directory = directory("aged");
    let (file, _origins) = chain(&directory, vec![("a", "chat", remembering()), ("b", "chat", remembering())]).await;
    assert_eq!(run("eval", &file, &["--sample", "2"]).await.0, 0);
    assert_eq!(checked(&file).await, []);
    let strict = run("check", &file, &["--strict"]).await;
    assert_eq!(strict.0, 0, "{}", strict.1);
    let scores = directory.join("segue-scores.json");
    let text = fs::read_to_string(&scores).unwrap();
    let day = &json_of(&text)["scores"][0]["at"].as_str().unwrap()[..10].to_owned();
    fs::write(&scores, text.replace(day, "2026-01-01")).unwrap();
    let all = checked(&file).await;
    assert_eq!(all[0].1, "levels.n: last evaluated more than 30 days ago: b/m (2026-01-01)", "{all:?}");
    assert_eq!(run("check", &file, &["--strict"]).await.0, 1);
    fs::write(&scores, text.replace("\"model\":\"m\"", "\"model\":\"earlier\"")).unwrap();
    let all = checked(&file).await;
    let changed = format!("levels.n: b/m was never evaluated: on {day} the model of this connection was `earlier`");
    assert_eq!(all[0].1, changed, "{all:?}");
}

#[tokio::test]
async fn a_judge_decides_what_the_search_leaves_open() {
    let directory = directory("judged");
    let (file, _origins) = chain(&directory, vec![("a", "chat", Scripts::fixed(Script::telling("It is 42.")))]).await;
    let rule = |shown: &Value| {
        let of = |name: &str| shown[name].as_str().unwrap();
        let label = EXAMPLES.iter().find(|(case, _)| (case.fact, case.answer) == (of("fact"), of("answer")));
        label.map_or_else(|| of("fact") == "forty-two or XLII" && of("answer") == "It is 42.", |(_, label)| *label)
    };
    let judge = Origin::local(Scripts::with(move |inquiry| {
        let shown = json_of(inquiry.body["messages"][1]["content"].as_str().unwrap());
        let ruling = json!({"reasoning": "so it seems", "preserved": rule(&shown)});
        Ok(Arc::new(Script::telling(&ruling.to_string())))
    }))
    .await
    .unwrap();
    let question = |id: &str, expect: Value| json!({"id": id, "messages": [{"role": "user", "content": "6 times 7?"}], "expect": expect});
    let cases = json!([
        question("found", "42".into()),
        question("judged", json!(["forty-two", "XLII"])),
        question("wrong", "43".into()),
    ]);
    let suite = directory.join("questions.json");
    fs::write(&suite, cases.to_string()).unwrap();
    let suite = ["--suite", suite.to_str().unwrap()];
    let (_, out, _) = run("eval", &file, &[&suite[..], &["--json"]].concat()).await;
    assert_eq!(json_of(&out)["targets"][0]["missed"], json!(["judged", "wrong"]), "{out}");
    let url = judge.base_url();
    let judged = ["--json", "--judge", &url, "--judge-model", "j", "--judge-key-env", "KEY"];
    let (code, out, err) = run("eval", &file, &[&suite[..], &judged].concat()).await;
    assert_eq!((code, &json_of(&out)["targets"][0]["missed"]), (0, &json!(["wrong"])), "{out}\n{err}");
    assert_eq!(judge.records().total(), 22, "its examples, and what was left open");
    let kept = json_of(&fs::read_to_string(directory.join("segue-scores.json")).unwrap());
    assert_eq!([&kept["scores"][0]["judge"], &kept["scores"][1]["judge"]], [&Value::Null, &json!("j")]);
    assert_eq!(kept["scores"][1]["suite"], "questions.json");
}

#[tokio::test]
async fn what_is_broken_is_told_before_anybody_is_asked_and_stays_as_it_is() {
    let directory = directory("broken");
    let (file, origins) = chain(&directory, vec![("a", "chat", remembering()), ("b", "chat", remembering())]).await;
    let scores = directory.join("segue-scores.json");
    let broken = "{\"version\": 1, \"scores\": [\n{\"connection\": 7}\n]}\n";
    fs::write(&scores, broken).unwrap();
    let place = format!("{}:2:", scores.display());
    let (code, out, err) = run("eval", &file, &[]).await;
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("this is no file of scores: invalid type: integer `7`") && err.contains(&place), "{err}");
    let (code, out, _) = run("check", &file, &[]).await;
    assert_eq!(code, 2, "{out}");
    assert!(out.contains(&place) && out.contains("first a/m") && out.contains("\n1 error"), "{out}");
    let (code, out, _) = run("check", &file, &["--json"]).await;
    let told = json_of(&out);
    assert_eq!((code, &told["valid"], &told["exit"]), (2, &json!(true), &json!(2)), "{out}");
    assert_eq!(fs::read_to_string(&scores).unwrap(), broken, "nothing of it is lost");
    let elsewhere = directory.join("elsewhere.json");
    assert_eq!(run("check", &file, &["--scores", elsewhere.to_str().unwrap()]).await.0, 0);

    fs::remove_file(&scores).unwrap();
    let odd = directory.join("odd.json");
    fs::write(&odd, r#"[{"id": "one", "messages": [], "expect": "x"}]"#).unwrap();
    let odd = odd.to_str().unwrap();
    for (arguments, words) in [
        (&["--suite", odd][..], "odd.json: entry 0 (one): the last of `messages` must be the user's"),
        (&["--suite", "no/such.json"], "--suite no/such.json: cannot be read"),
        (&["--connection", "c"], "there is no connection `c`; there are a, b"),
        (&["--target", "a/x"], "--target: no chain has a/x; there are a/m, b/m"),
        (&["--judge", "http://127.0.0.1:1"], "--judge-model"),
        (&["--judge", "http://127.0.0.1:1", "--judge-model", "j", "--judge-key-env", "NONE"], "NONE is not set"),
        (&["--judge", "http://127.0.0.1:1", "--judge-model", "j"], "judged 0 of 20 examples as people do"),
        (&["--sample", "3", "--all"], "cannot be used with"),
        (&["--sample", "0"], "--sample"),
    ] {
        let (code, out, err) = run("eval", &file, arguments).await;
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(words), "{arguments:?}: {err}");
    }
    let asked: u64 = origins.iter().map(|origin| origin.records().total()).sum();
    assert_eq!((asked, scores.exists()), (0, false));
    let (code, out, err) = run("eval", &file, &["--sample", "1", "--scores", directory.to_str().unwrap()]).await;
    assert_eq!((code, out.as_str()), (2, ""), "a directory is no file\n{err}");
}

#[tokio::test]
async fn what_was_interrupted_is_told_and_not_kept() {
    let directory = directory("interrupted");
    let mute = Scripts::fixed(Script::default().rejecting(Reject::NeverAnswers));
    let (file, origins) = chain(&directory, vec![("well", "chat", remembering()), ("mute", "chat", mute)]).await;
    let mut command = segue(&["eval", "--json", "--sample", "3", "--config", file.to_str().unwrap()]);
    let child = command.env("KEY", SECRET).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id().to_string();
    let begun = tokio::time::timeout(PATIENCE, async {
        while origins[0].records().total() < 3
            || origins[0].records().open_now() > 0
            || origins[1].records().total() < 1
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    begun.await.unwrap();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
    let (_, out, err) = told(output);
    let told = json_of(&out);
    assert_eq!(told["targets"][1]["stopped"], "interrupted", "{out}\n{err}");
    let kept = json_of(&fs::read_to_string(directory.join("segue-scores.json")).unwrap());
    let connections: Vec<&Value> = kept["scores"].as_array().unwrap().iter().map(|s| &s["connection"]).collect();
    assert!(!connections.contains(&&json!("mute")), "{kept}");
}
