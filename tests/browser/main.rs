//! A real browser before a real gateway: which pages can ask, and which cannot.
//!
//! Chromium decides here, not this crate: it sends what pages really send, and keeps from pages what they may not read.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]

use segue::config::{self, Resolver};
use segue::gateway::Gateway;
use segue::rig::origin::{Origin, Scripts};
use segue::rig::script::Script;
use segue::server::{self, listen};
use serde_json::Value;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Every secret is the same.
struct Secrets;

impl Resolver for Secrets {
    fn env(&self, _: &str) -> Option<String> {
        Some("sk-of-the-gateway".to_owned())
    }

    fn file(&self, path: &str) -> Result<String, String> {
        Err(format!("there are no files here, and no {path}"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chromium_lets_only_listed_pages_ask() {
    let Some(browser) = browser() else {
        return leave_out("there is no chromium");
    };
    if Command::new("node").arg("--version").stdout(Stdio::null()).status().is_err() {
        return leave_out("there is no node");
    }
    if !here().join("node_modules/playwright-core").is_dir() {
        return leave_out("the npm package playwright-core is not in tests/browser/node_modules");
    }
    let origin = Origin::local(Scripts::fixed(Script::telling("hello from the model"))).await.unwrap();
    let (friend, stranger) = (page().await, page().await);
    let text = format!(
        "[server]\ncors = [\"http://{friend}\"]\n[connections.a]\ndialect = \"chat\"\nbase_url = \"{}\"\n\
         [levels.main]\nchain = [{{ connection = \"a\", model = \"m\" }}]\n",
        origin.base_url()
    );
    let loaded = config::load(&text, "browser.toml", &Secrets)
        .unwrap_or_else(|problems| panic!("{}", problems.iter().map(|p| format!("{p}\n")).collect::<String>()));
    let gateway = Gateway::new(loaded.config).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let manners = listen::Manners { client_write: Duration::from_secs(10), drain: Duration::ZERO };
    tokio::spawn(listen::serve(listener, server::routes(gateway), manners, stop.clone()));

    let arguments = [browser.to_str().unwrap(), &addr.to_string(), &friend.to_string(), &stranger.to_string()];
    let told = run(&arguments).await;
    let asked = origin.records().total();
    stop.cancel();
    assert!(told.status.success(), "{told:?}");
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(told["friend"]["text"], "hello from the model", "{told:#}");
    assert_eq!(told["friend"]["level"], "main", "a page reads the headers: {told:#}");
    assert_eq!(told["friend"]["refused"], 404, "and errors: {told:#}");
    for what in ["json", "text"] {
        assert!(told["stranger"][what].as_str().unwrap().contains("Failed to fetch"), "{what}: {told:#}");
    }
    assert_eq!(told["stranger"]["blind"], "opaque", "it may send blindly, and reads nothing: {told:#}");
    assert_eq!(told["rebound"], 403, "a name that was made to resolve here: {told:#}");
    assert_eq!(asked, 1, "only the listed page spent anything: {told:#}");
}

// === helpers ===

/// A place that serves an empty page.
async fn page() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut asked = [0; 4096];
                let _ = stream.read(&mut asked).await;
                let page = "<!doctype html><title>a page</title>";
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length";
                let _ = stream.write_all(format!("{head}: {}\r\n\r\n{page}", page.len()).as_bytes()).await;
            });
        }
    });
    addr
}

async fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new("node");
    command.arg(here().join("pages.mjs")).args(arguments).stdin(Stdio::null());
    for variable in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(variable);
    }
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn browser() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name))).find(|program| program.is_file())
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser")
}

fn leave_out(missing: &str) {
    let message = format!("LEFT OUT the browser's pages: {missing}; `./tests/run` installs it");
    let required = std::env::var("SEGUE_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name.trim() == "browser"), "{message}");
    // Past the test harness, which shows nothing of what a test that passes prints.
    std::io::stderr().write_all(format!("{message}\n").as_bytes()).unwrap();
}
