//! Real clients against a real gateway: what the vendors' own SDKs make of turns whose provider dies.
//!
//! The providers are scripted and the gateway serves on a loopback port. The SDKs run in their own processes, with
//! their defaults (retries included), and report what they came to. Nothing here reads the gateway's bytes: the SDKs do.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]

mod cases;
mod house;
mod reports;

use cases::{Case, Client};
use house::House;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_python() {
    try_with(Client::OpenAi, &python("openai"), "openai_sdk.py").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_node() {
    try_with(Client::OpenAi, &node("openai"), "openai_sdk.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_responses_python() {
    try_with(Client::Responses, &python("openai"), "responses_sdk.py").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_responses_node() {
    try_with(Client::Responses, &node("openai"), "responses_sdk.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anthropic_python() {
    try_with(Client::Anthropic, &python("anthropic"), "anthropic_sdk.py").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anthropic_node() {
    try_with(Client::Anthropic, &node("@anthropic-ai/sdk"), "anthropic_sdk.mjs").await;
}

/// A program that runs scripts, and what is missing for that.
struct Interpreter {
    program: PathBuf,
    missing: Option<String>,
}

async fn try_with(client: Client, interpreter: &Interpreter, script: &str) {
    if let Some(missing) = &interpreter.missing {
        return leave_out(script, missing);
    }
    let cases = cases::all();
    let house = House::open(&cases).await;
    let base_url = match client {
        Client::OpenAi | Client::Responses => format!("http://{}/v1", house.addr),
        Client::Anthropic => format!("http://{}", house.addr),
    };
    let asked = reports::asked(&cases);
    let mut command = Command::new(&interpreter.program);
    command.arg(here().join(script)).arg(base_url);
    // A proxy or a key of the developer's own must not get between.
    for variable in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(variable);
    }
    let output = house::talk(command, &asked.to_string()).await;
    let answer = reports::read(&output);
    say(&format!("{}: {} calls", answer.sdk, answer.reports.len()));
    let mut faults = reports::judge(client, &cases, &answer.reports);
    faults.extend(house.judge(client, &cases));
    house.close().await;
    assert!(faults.is_empty(), "{}: {} faults\n{}", answer.sdk, faults.len(), faults.join("\n"));
}

// === helpers ===

fn leave_out(script: &str, missing: &str) {
    let message = format!("LEFT OUT {script}: {missing}; `./tests/run` installs it");
    let required = std::env::var("SEGUE_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name.trim() == "sdk"), "{message}");
    say(&message);
}

/// Past the test harness, which shows nothing of what a test that passes prints.
fn say(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk")
}

fn python(package: &str) -> Interpreter {
    let program = here().with_file_name(".venv").join("bin/python");
    let import = Command::new(&program).args(["-c", &format!("import {package}")]).stderr(Stdio::null()).status();
    let missing = match import {
        Ok(status) if status.success() => None,
        Ok(_) => Some(format!("the Python package {package} is not in tests/.venv")),
        Err(_) => Some("there is no tests/.venv".to_owned()),
    };
    Interpreter { program, missing }
}

fn node(package: &str) -> Interpreter {
    let program = PathBuf::from("node");
    let missing = if Command::new(&program).arg("--version").stdout(Stdio::null()).status().is_err() {
        Some("there is no node".to_owned())
    } else if !here().join("node_modules").join(package).is_dir() {
        Some(format!("the npm package {package} is not in tests/sdk/node_modules"))
    } else {
        None
    };
    Interpreter { program, missing }
}

impl Case {
    /// How a failing check names it.
    fn says(&self, how: &str, what: &str) -> String {
        format!("{} ({how}): {what}", self.name)
    }
}
