//! The scripted provider alone: what `segue mock` runs.
//!
//! Without a file it tells a pleasant text at reading speed in every API of the rig, and a model's name chooses a fault
//! ([`super::names`]). A file says what it does instead: one [`Script`], or a [`File`] of several.

use super::delay::Delay;
use super::names;
use super::origin::{NoModel, Origin, Scripts};
use super::script::Script;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Several scripts and when they are played.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct File {
    /// For requests that nothing else is for. A fault in a model's name is laid over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Script>,
    /// For the first, second, … request whose model is not among `models`; the last one repeats.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sequence: Vec<Script>,
    /// By the model's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Script>,
}

// === impl File ===

impl File {
    /// Reads a file in TOML or, where it begins with `{`, in JSON: one script, or several under the keys of this type.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.trim_start().starts_with('{') {
            let json = |e: serde_json::Error| e.to_string();
            let keys: BTreeMap<String, serde_json::Value> = serde_json::from_str(text).map_err(json)?;
            if is_several(keys.keys().map(String::as_str)) {
                serde_json::from_str(text).map_err(json)
            } else {
                serde_json::from_str(text).map(Self::of).map_err(json)
            }
        } else {
            let toml = |e: toml::de::Error| e.to_string();
            let keys: toml::Table = toml::from_str(text).map_err(toml)?;
            if is_several(keys.keys().map(String::as_str)) {
                toml::from_str(text).map_err(toml)
            } else {
                toml::from_str(text).map(Self::of).map_err(toml)
            }
        }
    }

    /// How an origin plays it.
    pub fn scripts(self) -> Scripts {
        let Self { default, sequence, models } = self;
        let base = default.unwrap_or_else(pleasant);
        let listed = if models.is_empty() {
            names::EXAMPLES.map(str::to_owned).to_vec()
        } else {
            models.keys().cloned().collect()
        };
        let sequence: Vec<Arc<Script>> = sequence.into_iter().map(Arc::new).collect();
        let models: BTreeMap<String, Arc<Script>> = models.into_iter().map(|(name, s)| (name, Arc::new(s))).collect();
        let next = std::sync::atomic::AtomicUsize::new(0);
        let choose = move |model: &str| {
            if let Some(script) = models.get(model) {
                return Ok(Arc::clone(script));
            }
            if let Some(last) = sequence.last() {
                let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                return Ok(Arc::clone(sequence.get(at).unwrap_or(last)));
            }
            names::script(model, &base).map(Arc::new).map_err(NoModel)
        };
        Scripts::with(move |inquiry| choose(inquiry.model)).listing(listed)
    }

    fn of(script: Script) -> Self {
        Self { default: Some(script), ..Self::default() }
    }
}

// === running ===

/// Listens at `listen` and plays `file`.
///
/// # Errors
/// If it cannot listen there.
pub async fn start(listen: SocketAddr, file: File) -> io::Result<Origin> {
    Origin::start(listen, file.scripts()).await
}

/// A text worth reading, at reading speed.
pub fn pleasant() -> Script {
    let mut script = Script::telling(TEXT).paced(Duration::from_millis(250), Duration::from_millis(40));
    script.pace.headers = Delay::Fixed(Duration::from_millis(50));
    script
}

// === helpers ===

fn is_several<'a>(mut keys: impl Iterator<Item = &'a str>) -> bool {
    keys.any(|key| matches!(key, "default" | "sequence" | "models"))
}

const TEXT: &str = "\
In a score, the word *segue* stands where one movement ends and the next one must begin without a pause. The players \
do not put down their bows; nobody coughs; the last note of the slow movement is still in the air when the first of \
the fast one meets it. Whoever listens hears one piece.

It takes three things to do it well:

1. Someone has to know exactly where the music stopped, down to the beat.
2. Whoever goes on must begin there, not at the top of the page, and not a bar too late.
3. The join must not be heard. A breath in the wrong place is enough to give it away.

An orchestra practises that for weeks. It is told that a second violin once broke a string in the middle of a solo, \
took the instrument of the man beside him, and finished the phrase; the recording shows nothing, and the critics \
wrote about the tempo.";

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

    use super::{Delay, Duration, File, Script, pleasant};
    use crate::rig::script::{Break, Continuation, Fault, Reject};

    #[test]
    fn a_file_may_hold_one_script_in_toml() {
        let file = File::read(
            r#"
            continuation = "curly_quotes"
            fault = { at = 3, how = { pings_only = { every = "500ms" } } }
            [content]
            text = "One two three four"
            tools = [{ id = "c", name = "f", args = ["{\"a\"", ":1}"] }]
            [pace]
            first = "0.2s"
            gap = { log_normal = { median = "20ms", sigma = 0.6 } }
            "#,
        )
        .unwrap();
        let script = file.default.unwrap();
        assert_eq!(script.content.text, ["One", " two", " three", " four"]);
        assert_eq!(script.continuation, Continuation::CurlyQuotes);
        let every = Duration::from_millis(500);
        assert_eq!(script.fault, Some(Fault { at: 3, how: Break::PingsOnly { every } }));
        assert_eq!(script.pace.first, Delay::Fixed(Duration::from_millis(200)));
    }

    #[test]
    fn a_file_may_hold_several_in_json() {
        let file = File::read(
            r#"{"models": {"a": {"reject": {"error": {"status": 429, "headers": {"retry-after": "2"}}}}},
                "sequence": [{"reject": "never_answers"}, {}]}"#,
        )
        .unwrap();
        assert!(matches!(file.models["a"].reject, Some(Reject::Error { status: 429, .. })));
        assert_eq!(file.sequence[0].reject, Some(Reject::NeverAnswers));
        assert_eq!(file.sequence[1], Script::default());
    }

    #[test]
    fn errors_say_where_and_what() {
        let error = File::read("[pace]\ngap = 20\n").unwrap_err();
        assert!(error.contains("line 2") && error.contains("\"20ms\""), "{error}");
        let error = File::read("[pase]\ngap = \"20ms\"\n").unwrap_err();
        assert!(error.contains("line 1") && error.contains("pace"), "{error}");
        let error = File::read("{\"fault\": {\"at\": 1, \"how\": \"explode\"}}").unwrap_err();
        assert!(error.contains("explode") && error.contains("silence"), "{error}");
    }

    #[test]
    fn the_pleasant_text_takes_some_seconds() {
        let script = pleasant();
        assert!((100..250).contains(&script.content.text.len()), "{}", script.content.text.len());
    }
}
