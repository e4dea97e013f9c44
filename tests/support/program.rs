//! The built program, run as its users run it.

use http::HeaderMap;
use segue::upstream::client::Client;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, TrySendError};
use std::time::Duration;

/// The program without anything of this environment that it would look at.
pub(crate) fn segue(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_segue"));
    let nowhere = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nowhere");
    fs::create_dir_all(&nowhere).unwrap();
    command.args(arguments).env_clear().env("HOME", &nowhere).current_dir(nowhere).stdin(Stdio::null());
    command
}

pub(crate) fn run(arguments: &[&str]) -> (i32, String, String) {
    told(segue(arguments).output().unwrap())
}

pub(crate) fn told(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A file of this test.
pub(crate) fn scratch(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{name}.toml"));
    fs::write(&path, text).unwrap();
    path
}

/// Asks for a whole answer.
pub(crate) async fn ask(base_url: &str, model: &str) -> (u16, Value) {
    let body = serde_json::json!({"model": model, "messages": [{"role": "user", "content": "Hello!"}]}).to_string();
    let client = Client::new().unwrap();
    let asked = async {
        let answer = client.post(&format!("{base_url}/chat/completions"), HeaderMap::new(), body).await.unwrap();
        let status = answer.status;
        (status, serde_json::from_slice(&answer.bytes(1 << 20).await.unwrap()).unwrap())
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap()
}

/// A program that runs until it is stopped.
pub(crate) struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
    pub(crate) seen: Vec<String>,
}

/// Which of its outputs is read.
#[derive(Clone, Copy)]
pub(crate) enum Stream {
    Out,
    Err,
}

impl Running {
    pub(crate) fn start(arguments: &[&str], environment: &[(&str, &str)], stream: Stream) -> Self {
        let mut command = segue(arguments);
        command.envs(environment.iter().copied());
        Self::of(command, stream)
    }

    /// Starts what `command` says.
    pub(crate) fn of(mut command: Command, stream: Stream) -> Self {
        match stream {
            Stream::Out => command.stdout(Stdio::piped()).stderr(Stdio::null()),
            Stream::Err => command.stderr(Stdio::piped()).stdout(Stdio::null()),
        };
        let mut child = command.spawn().unwrap();
        let output: Box<dyn Read + Send> = match stream {
            Stream::Out => Box::new(child.stdout.take().unwrap()),
            Stream::Err => Box::new(child.stderr.take().unwrap()),
        };
        let (sender, lines) = mpsc::sync_channel(10_000);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // What no test looks for any more is read all the same: a pipe that nobody empties fills up.
                if let Err(TrySendError::Disconnected(_)) = sender.try_send(line) {
                    return;
                }
            }
        });
        Self { child, lines, seen: Vec::new() }
    }

    /// The first line from here on that holds `words`.
    pub(crate) fn until(&mut self, words: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic_with(words, &self.seen));
            self.seen.push(line.clone());
            if line.contains(words) {
                return line;
            }
        }
    }

    /// From the first line that holds `before`: what is from `http` on, up to `after`.
    pub(crate) fn find(&mut self, before: &str, after: &str) -> String {
        let line = self.until(before);
        let from = line.find("http").unwrap();
        let end = line[from..].find(after).unwrap_or(line.len() - from);
        line[from..from + end].to_owned()
    }

    /// Sends it a signal: `TERM`, `HUP`, `INT`.
    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(kill.success());
    }

    /// Waits until it ends by itself, and gives its exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Its number among the processes.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop, as a supervisor would, and gives its exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        self.signal("TERM");
        let code = self.child.wait().unwrap().code();
        self.seen.extend(self.lines.iter());
        code
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn panic_with(words: &str, seen: &[String]) -> String {
    panic!("`{words}` did not come; before it: {seen:#?}")
}

pub(crate) const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
