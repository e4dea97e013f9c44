//! What `deploy/` holds: each file is one that the program it is for would take, and names nothing that Segue does not know.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use segue::config::{self, Resolver};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::program::run;

fn file(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

struct Any;

impl Resolver for Any {
    fn env(&self, _: &str) -> Option<String> {
        Some("a-secret".to_owned())
    }

    fn file(&self, _: &str) -> Result<String, String> {
        Err("there are no files".to_owned())
    }
}

#[test]
fn every_variable_is_one_that_the_help_names() {
    let (_, help, _) = run(&["serve", "--help"]);
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let words = text.split(|c: char| !c.is_ascii_uppercase() && c != '_');
        seen.extend(words.filter(|word| word.starts_with("SEGUE_")).map(str::to_owned));
    }
    assert!(seen.len() >= 4, "{seen:?}");
    for variable in seen {
        assert!(help.contains(&variable), "`segue serve --help` does not name {variable}");
    }
}

#[test]
fn the_configuration_for_kubernetes_is_good_and_fits_its_probes_and_patience() {
    let manifest = file("kubernetes.yaml");
    let block = manifest.split("segue.toml: |\n").nth(1).unwrap();
    let lines = block.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    let text: String = lines.map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or_default())).collect();
    let loaded = config::load(&text, "segue.toml", &Any).unwrap();
    assert_eq!(loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(), Vec::<String>::new());
    let server = &loaded.config.server;
    let number = |key: &str| {
        let after = manifest.split(key).nth(1).unwrap().trim_start();
        after.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u64>().unwrap()
    };
    assert!((server.drain_delay + server.drain).as_secs() < number("terminationGracePeriodSeconds:"));
    assert_eq!(u64::from(server.listen.port()), number("{ name: clients, containerPort:"));
    assert_eq!(u64::from(loaded.config.admin.listen.port()), number("{ name: admin, containerPort:"));
    // A replica is out of the endpoints before it takes no more turns: the probe fails three times first.
    assert!(
        3 * number("readinessProbe:\n            httpGet: { path: /readyz, port: admin }\n            periodSeconds:")
            < server.drain_delay.as_secs()
    );
}

#[test]
fn what_the_image_copies_is_there() {
    let dockerfile = file("Dockerfile");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let copies =
        dockerfile.lines().filter_map(|line| line.strip_prefix("COPY ")).filter(|line| !line.starts_with("--"));
    let sources: Vec<&str> = copies.flat_map(|line| line.rsplit_once(' ').unwrap().0.split(' ')).collect();
    assert!(sources.len() >= 5, "{sources:?}");
    for source in sources {
        assert!(root.join(source).exists(), "{source}");
    }
}

#[test]
fn systemd_takes_the_unit() {
    let unit = file("segue.service").replace("/usr/local/bin/segue", env!("CARGO_BIN_EXE_segue"));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("segue.service");
    fs::write(&path, unit).unwrap();
    let Ok(output) = Command::new("systemd-analyze").arg("verify").arg(&path).output() else {
        return;
    };
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let ours: Vec<&str> =
        told.lines().filter(|line| line.contains("segue.service") && !line.contains("segue(1)")).collect();
    assert!(ours.is_empty(), "{told}");
}
