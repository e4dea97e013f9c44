//! A new configuration for the running program: by signal, and over the admin listener.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use http::HeaderMap;
use segue::rig::origin::{Origin, Scripts};
use segue::rig::script::Script;
use segue::upstream::client::Client;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use support::program::{Running, SERVE, Stream, ask, scratch};

/// Two providers, and a file whose one level is served by one of them.
struct House {
    serve: Running,
    clients: String,
    operators: String,
    file: PathBuf,
    origins: [Origin; 2],
}

impl House {
    async fn new(name: &str) -> Self {
        let origins = [
            Origin::local(telling("The first tells.")).await.unwrap(),
            Origin::local(telling("The second tells.")).await.unwrap(),
        ];
        let file = scratch(name, &text(&origins, "a"));
        let arguments = [&SERVE[..], &["--config", file.to_str().unwrap()]].concat();
        let mut serve = Running::start(&arguments, &[], Stream::Err);
        let clients = serve.find("clients  ", "/v1") + "/v1";
        let operators = serve.find("admin    ", "/api");
        Self { serve, clients, operators, file, origins }
    }

    /// The file with the level `level`, which `a` or `b` serves and which is called after it.
    fn write(&self, connection: &str) -> String {
        let text = text(&self.origins, connection);
        fs::write(&self.file, &text).unwrap();
        text
    }

    /// Writes a file with a mistake in its last line; gives the place that must be named.
    fn write_broken(&self) -> String {
        let text = self.write("b").replace("chain = ", "chian = ");
        fs::write(&self.file, &text).unwrap();
        format!("{}:{}:1", self.file.display(), text.lines().count())
    }

    async fn told(&self, level: &str) -> (u16, String) {
        let (status, answer) = ask(&self.clients, level).await;
        (status, answer["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned())
    }

    async fn reload(&self) -> (u16, Value) {
        let url = format!("{}/api/reload", self.operators);
        let answer = Client::new().unwrap().post(&url, HeaderMap::new(), "").await.unwrap();
        let status = answer.status;
        (status, serde_json::from_slice(&answer.bytes(1 << 20).await.unwrap()).unwrap())
    }
}

fn telling(text: &str) -> Scripts {
    Scripts::fixed(Script::telling(text))
}

fn text(origins: &[Origin; 2], connection: &str) -> String {
    let [a, b] = [origins[0].base_url(), origins[1].base_url()];
    format!(
        "[connections.a]\ndialect = \"chat\"\nbase_url = \"{a}\"\n\
         [connections.b]\ndialect = \"chat\"\nbase_url = \"{b}\"\n\
         [levels.by-{connection}]\nchain = [{{ connection = \"{connection}\", model = \"m\" }}]\n"
    )
}

#[tokio::test]
async fn a_signal_brings_the_new_levels_and_a_broken_file_changes_nothing() {
    let mut house = House::new("reload-signal").await;
    assert_eq!(house.told("by-a").await, (200, "The first tells.".to_owned()));
    assert_eq!(house.told("by-b").await.0, 404);

    house.write("b");
    house.serve.signal("HUP");
    house.serve.until("the configuration was reloaded");
    assert_eq!(house.told("by-b").await, (200, "The second tells.".to_owned()));
    assert_eq!(house.told("by-a").await.0, 404, "the old level is gone");

    let place = house.write_broken();
    house.serve.signal("HUP");
    house.serve.until("the old one holds");
    let line = house.serve.until(&place);
    assert!(line.contains("levels.by-b.chian") && line.contains("did you mean `chain`?"), "{line}");
    assert_eq!(house.told("by-b").await, (200, "The second tells.".to_owned()));

    house.write("a");
    house.serve.signal("HUP");
    house.serve.until("the configuration was reloaded");
    assert_eq!(house.told("by-a").await.0, 200, "a good file is taken after a bad one");
    assert_eq!(house.serve.stop(), Some(0));
}

#[tokio::test]
async fn an_operator_is_told_what_changed_or_what_is_wrong() {
    let mut house = House::new("reload-operator").await;
    let place = house.write_broken();
    let (status, answer) = house.reload().await;
    assert_eq!(status, 422, "{answer}");
    let problems = answer["error"]["problems"].as_array().unwrap();
    let mut words = problems.iter().filter_map(Value::as_str);
    assert!(words.any(|p| p.starts_with(&place) && p.contains("did you mean `chain`?")), "{place}: {answer}");
    assert_eq!(house.told("by-a").await, (200, "The first tells.".to_owned()), "the old one holds");

    let text = house.write("b");
    let limited = text.replacen("[levels", "limits = { rpm = 600 }\n[levels", 1);
    fs::write(&house.file, format!("{limited}[server]\ndrain = \"1s\"\n")).unwrap();
    let (status, answer) = house.reload().await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        (&answer["connections"], &answer["removed"]),
        (&Value::from(vec!["b"]), &Value::from(Vec::<Value>::new()))
    );
    assert_eq!(answer["needs_restart"], Value::from(vec!["server.drain"]), "{answer}");
    assert_eq!(house.told("by-b").await, (200, "The second tells.".to_owned()));
    assert_eq!(house.serve.stop(), Some(0));
}
