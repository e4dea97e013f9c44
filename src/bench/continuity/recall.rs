//! The built-in providers: they answer from the messages that they are given, and from nothing else.
//!
//! A probe is answered with the fact only if the request holds it. All of them tell the same answer slot by slot, each
//! in its own words; one that is asked to go on with another's answer completes the word that it broke off in, and goes
//! on in its own. They fail as a manifest says, by the mark of the conversation, on every ask while a failure lasts.

use super::account::{Account, Span, Witness};
use super::answer::{Answer, PROVIDERS};
use super::manifest::{Failure, Manifest, Mode};
use super::suite::Conversation;
use crate::rig::mark::Mark;
use crate::rig::origin::{Inquiry, Origin, Scripts};
use crate::rig::reading::{content, quoted, role};
use crate::rig::script::{Break, Content, Reject, Script, Wrong};
use crate::rig::text;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// The providers, listening. Dropping them stops them.
#[derive(Debug)]
pub struct Recall {
    /// In the order of [`PROVIDERS`].
    pub origins: Vec<Origin>,
    stage: Arc<Stage>,
}

/// How fast they speak.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// From the request to the first word.
    pub first: Duration,
    /// Between words.
    pub gap: Duration,
}

#[derive(Debug)]
struct Stage {
    conversations: HashMap<String, Conversation>,
    failures: RwLock<HashMap<String, Vec<Failure>>>,
    asks: Mutex<HashMap<Mark, Vec<Ask>>>,
    pace: Pace,
}

/// A request that reached a provider.
#[derive(Clone, Copy, Debug)]
struct Ask {
    provider: usize,
    number: u64,
    struck: bool,
    knows: bool,
    prompt: u64,
}

// === impl Recall ===

impl Recall {
    /// Starts the providers at these addresses; port 0 is any free one.
    ///
    /// # Errors
    /// If one cannot listen.
    pub async fn start(suite: &[Conversation], pace: Pace, at: [SocketAddr; 4]) -> std::io::Result<Self> {
        let stage = Arc::new(Stage {
            conversations: suite.iter().map(|c| (c.id.clone(), c.clone())).collect(),
            failures: RwLock::default(),
            asks: Mutex::default(),
            pace,
        });
        let mut origins = Vec::new();
        for (provider, address) in at.into_iter().enumerate() {
            let stage = Arc::clone(&stage);
            let scripts = Scripts::with(move |inquiry| Ok(Arc::new(stage.script(provider, inquiry))));
            origins.push(Origin::start(address, scripts.listing(vec![MODEL.to_owned()])).await?);
        }
        Ok(Self { origins, stage })
    }

    /// What fails from now on; `None`: nothing.
    pub fn play(&self, manifest: Option<&Manifest>) {
        let plans = manifest.iter().flat_map(|manifest| &manifest.plans);
        let failures = plans.map(|plan| (plan.conversation.clone(), plan.failures.clone())).collect();
        *self.stage.failures.write().unwrap_or_else(PoisonError::into_inner) = failures;
        self.stage.asks().clear();
    }

    /// Name and base URL of each.
    pub fn places(&self) -> Vec<(String, String)> {
        PROVIDERS.iter().zip(&self.origins).map(|(name, origin)| ((*name).to_owned(), origin.base_url())).collect()
    }
}

impl Witness for Recall {
    fn account(&self, mark: &Mark) -> Account {
        let asks = self.stage.asks().remove(mark).unwrap_or_default();
        let now = tokio::time::Instant::now().into_std();
        let mut account = Account::default();
        for ask in asks {
            let record = self.origins[ask.provider].records().get(ask.number);
            let span = record.as_ref().map(|record| Span {
                from: record.at.into_std(),
                to: record.ended.map_or(now, tokio::time::Instant::into_std),
            });
            let told = record.map_or(0, |record| record.tokens as u64);
            account.add(PROVIDERS[ask.provider], ask.struck, span, [ask.prompt, told]);
            if 0 < told {
                account.history_arrived = Some(ask.knows);
            }
        }
        account
    }
}

// === impl Stage ===

impl Stage {
    fn asks(&self) -> MutexGuard<'_, HashMap<Mark, Vec<Ask>>> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn script(&self, provider: usize, inquiry: &Inquiry<'_>) -> Script {
        let mark = Mark::of(inquiry.body);
        let known = mark.and_then(|mark| Some((self.conversations.get(&mark.conversation)?, mark)));
        let Some((conversation, mark)) = known else { return self.paced(text::words(STRANGER), 0) };
        let answer = Answer::of(conversation, mark.turn);
        let knows = was_told(conversation, inquiry.body);
        let pieces = pieces(&answer, provider, knows, inquiry.body);
        let failures = self.failures.read().unwrap_or_else(PoisonError::into_inner);
        let strikes = |f: &&Failure| {
            (f.turn..=f.until).contains(&mark.turn) && f.providers.iter().any(|name| name == PROVIDERS[provider])
        };
        let failure = failures.get(&mark.conversation).and_then(|all| all.iter().find(strikes)).cloned();
        drop(failures);
        let prompt = inquiry.body["messages"].as_array().into_iter().flatten().map(|m| content(m).len()).sum::<usize>();
        let prompt = prompt as u64 / 4;
        let ask = Ask { provider, number: inquiry.number, struck: failure.is_some(), knows, prompt };
        let mut asks = self.asks();
        // A gateway that asks without end does not fill the memory.
        let list = asks.entry(mark).or_default();
        if list.len() < MOST_ASKS {
            list.push(ask);
        }
        drop(asks);
        let end = answer.slots.last().map_or(0, |slot| text::words(slot.said_by(provider, knows)).len());
        let last = pieces.len().saturating_sub(end + 1);
        let script = self.paced(pieces, prompt);
        match failure {
            Some(failure) => failing(script, failure.mode, failure.token.unwrap_or_default().min(last)),
            None => script,
        }
    }

    fn paced(&self, pieces: Vec<String>, prompt_tokens: u64) -> Script {
        let content = Content { text: pieces, prompt_tokens, ..Content::default() };
        Script { content, ..Script::default() }.paced(self.pace.first, self.pace.gap)
    }
}

// === helpers ===

/// What `provider` says to these messages.
fn pieces(answer: &Answer, provider: usize, knows: bool, body: &Value) -> Vec<String> {
    let whole = || answer.told_by(provider, 0, knows);
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (told, anchor) = match messages {
        [.., last] if role(last) == "assistant" => (content(last), String::new()),
        [.., before, last] if role(before) == "assistant" => {
            let told = content(before);
            let anchor = quoted(&content(last), &told);
            // What quotes nothing of it is the next question.
            if anchor.is_empty() {
                return whole();
            }
            (told, anchor)
        }
        _ => return whole(),
    };
    let told = if anchor.is_empty() { told.as_str() } else { told.trim_end() };
    let walk = answer.walk(told);
    if told.is_empty() || walk.bytes != told.len() {
        return whole();
    }
    let mut pieces = text::words(&anchor);
    let open = !walk.rest.is_empty();
    if open {
        pieces.push(walk.rest);
    }
    pieces.extend(answer.told_by(provider, walk.slots + usize::from(open), knows));
    pieces
}

/// Whether the user's messages hold the fact.
pub(super) fn was_told(conversation: &Conversation, body: &Value) -> bool {
    let Some(messages) = body["messages"].as_array() else { return false };
    let fact = conversation.expected_fact.to_lowercase();
    let telling = conversation.turns.get(conversation.fact_turn_index).map(|turn| turn.content.as_str());
    messages.iter().filter(|m| role(m) == "user").any(|message| {
        let text = content(message);
        text.to_lowercase().contains(&fact) || telling.is_some_and(|telling| text.contains(telling))
    })
}

fn failing(script: Script, mode: Mode, at: usize) -> Script {
    let status = |status| Reject::Error { status, headers: BTreeMap::new(), wrong: None };
    match mode {
        Mode::Timeout => script.rejecting(Reject::NeverAnswers),
        Mode::ApiError => script.rejecting(status(502)),
        Mode::RateLimit => script.rejecting(status(429)),
        Mode::Stall => script.breaking(at, Break::Silence),
        Mode::Reset => script.breaking(at, Break::Reset),
        Mode::Truncation => script.breaking(at, Break::CleanEnd),
        Mode::ErrorEvent => {
            let error = Break::ErrorEvent { wrong: Wrong::Server, form: Default::default(), done: false };
            script.breaking(at, error)
        }
    }
}

// === consts ===

/// The model that they are asked for; they answer to any.
pub const MODEL: &str = "recall";

/// What is said to who plays no conversation.
const STRANGER: &str = "This provider knows the conversations of the benchmark and no other.";

/// The most requests of one answer that are noted.
const MOST_ASKS: usize = 64;

#[cfg(test)]
mod tests {
    use super::super::answer::tests::conversation;
    use super::*;
    use serde_json::json;

    fn body(extra: &[Value]) -> Value {
        let mut messages = vec![
            json!({"role": "user", "content": "My boat is called Zephyrine. Please keep it in mind. [c1/0/0]"}),
            json!({"role": "user", "content": "What is my boat called? [c1/4/0]"}),
        ];
        messages.extend_from_slice(extra);
        json!({ "messages": messages })
    }

    #[test]
    fn the_fact_is_told_only_by_who_was_given_it() {
        let conversation = conversation("c1");
        let mut body = body(&[]);
        assert!(was_told(&conversation, &body));
        body["messages"].as_array_mut().map(|m| m.remove(0));
        assert!(!was_told(&conversation, &body));
        let said = json!({"messages": [{"role": "assistant", "content": "Zephyrine"}]});
        assert!(!was_told(&conversation, &said), "what an assistant said is no message of the user's");
    }

    #[test]
    fn another_providers_answer_is_gone_on_with_in_ones_own_words() {
        let answer = Answer::of(&conversation("c1"), 4);
        let whole = answer.told_by(0, 0, true).concat();
        for end in [30, 57, 111, 200] {
            let told = &whole[..end];
            let anchor = &told.trim_end()[told.trim_end().len() - 20..];
            let going_on = [
                json!({"role": "assistant", "content": told}),
                json!({"role": "user", "content": format!("It ended in <{anchor}>, go on.")}),
            ];
            let said = pieces(&answer, 2, true, &body(&going_on)).concat();
            let rest = said.strip_prefix(anchor).unwrap_or_default();
            let joined = format!("{}{rest}", told.trim_end());
            let walk = answer.walk(&joined);
            assert_eq!((walk.slots, walk.bytes), (answer.slots.len(), joined.len()), "{joined}");
            assert_eq!(walk.voices.last().map(|v| v.1), Some(2));
            let said = pieces(&answer, 2, true, &body(&going_on[..1])).concat();
            assert_eq!(answer.walk(&format!("{told}{said}")).slots, answer.slots.len());
        }
        let next = [json!({"role": "assistant", "content": whole}), json!({"role": "user", "content": "And now?"})];
        assert_eq!(pieces(&answer, 1, true, &body(&next)), answer.told_by(1, 0, true));
    }
}
