//! The ledger of the built program: where it is, what it tells, and what a kill costs.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use segue::ledger::reader::Reader;
use segue::ledger::report::Ask;
use segue::rig::origin::{Origin, Scripts};
use segue::rig::script::Script;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::program::{Running, SERVE, Stream, ask, run, segue};

/// An empty folder of this test with a configuration in it.
fn folder(name: &str, base_url: &str, more: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ledger-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "[connections.a]\ndialect = \"chat\"\nbase_url = \"{base_url}\"\napi_key = {{ env = \"KEY\" }}\n\
         [levels.main]\nchain = [{{ connection = \"a\", model = \"m\" }}]\n[ledger]\n\
         prices = {{ \"a/m\" = {{ input = 1000000, output = 0 }} }}\n{more}"
    );
    fs::write(folder.join("segue.toml"), text).unwrap();
    folder
}

fn serve(folder: &Path) -> Running {
    let config = folder.join("segue.toml");
    let arguments = [&SERVE[..], &["--config", config.to_str().unwrap()]].concat();
    Running::start(&arguments, &[("KEY", "a-key-of-some-length")], Stream::Err)
}

fn turns(file: &Path) -> u64 {
    let ask = Ask { from: 0.0, to: 1e11, tenant: None, level: None };
    Reader::open(file).and_then(|reader| reader.report(&ask)).map_or(0, |report| report.turns)
}

async fn provider() -> Origin {
    Origin::local(Scripts::fixed(Script::telling("It is enough."))).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_are_told_after_the_gateway_has_ended_and_a_kill_costs_none_that_were_written() {
    let origin = provider().await;
    let folder = folder("told", &origin.base_url(), "");
    let file = folder.join("segue.db");
    let mut first = serve(&folder);
    let base_url = first.find("clients  ", "/v1") + "/v1";
    for _ in 0..3 {
        assert_eq!(ask(&base_url, "main").await.0, 200);
    }
    assert_eq!(first.stop(), Some(0));
    assert_eq!(turns(&file), 3, "who is asked to stop writes all");

    let mut second = serve(&folder);
    let base_url = second.find("clients  ", "/v1") + "/v1";
    assert_eq!(ask(&base_url, "main").await.0, 200);
    let written = async {
        while turns(&file) < 4 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), written).await.unwrap();
    second.signal("KILL");
    second.wait();
    assert_eq!(turns(&file), 4);

    let path = file.to_str().unwrap();
    let (code, out, err) = run(&["report", "--ledger", path]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("0 of 4 turns failed") && out.contains("a/m"), "{out}");
    let (code, out, _) = run(&["report", "--ledger", path, "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["turns"]), (0, &4.into()));
    assert!(report["spent"][0]["cost"].as_f64().unwrap() >= 4.0, "{out}");
    let config = folder.join("segue.toml");
    let mut export = segue(&["ledger", "export", "--what", "attempts", "--config", config.to_str().unwrap()]);
    let out = String::from_utf8(export.env("KEY", "a-key-of-some-length").output().unwrap().stdout).unwrap();
    assert_eq!(out.lines().count(), 5, "a head and four attempts: {out}");
    let (code, _, err) = run(&["report", "--ledger", path, "--from", "tomorrow"]);
    assert!(code == 2 && err.contains("--from: write a moment as"), "{err}");
    let (code, _, err) = run(&["report"]);
    assert!(code == 2, "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_kept_only_where_that_is_said() {
    let origin = provider().await;
    for (name, more, kept) in [("silent", "", false), ("bodies", "bodies = true\n", true)] {
        let folder = folder(name, &origin.base_url(), more);
        let mut serve = serve(&folder);
        let base_url = serve.find("clients  ", "/v1") + "/v1";
        assert_eq!(ask(&base_url, "main").await.0, 200);
        assert_eq!(serve.stop(), Some(0));
        let bytes = fs::read(folder.join("segue.db")).unwrap();
        let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert_eq!((holds("It is enough."), holds("Hello!")), (kept, kept), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_written_costs_no_turn() {
    let origin = provider().await;
    let folder = folder("missing", &origin.base_url(), "path = \"no/such/folder/segue.db\"\n");
    let mut serve = serve(&folder);
    let base_url = serve.find("clients  ", "/v1") + "/v1";
    assert_eq!(ask(&base_url, "main").await.0, 200);
    assert_eq!(serve.stop(), Some(0));
    assert!(serve.seen.iter().any(|line| line.contains("the ledger loses rows")), "{:?}", serve.seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_configuration_nothing_is_left_behind() {
    let origin = provider().await;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ledger-none");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let mut command = segue(&SERVE);
    let host = origin.base_url().trim_end_matches("/v1").to_owned();
    command.current_dir(&folder).env("HOME", &folder).env("OLLAMA_HOST", host);
    let mut serve = Running::of(command, Stream::Err);
    let base_url = serve.find("clients  ", "/v1") + "/v1";
    assert_eq!(ask(&base_url, "normal").await.0, 200);
    assert_eq!(serve.stop(), Some(0));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}
