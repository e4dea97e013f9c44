//! All conversations, several at a time, several times over.

use super::manifest::Manifest;
use super::player::Player;
use super::record::Record;
use super::suite::Conversation;
use std::sync::Arc;
use tokio::task::JoinSet;

/// How much is played.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// How often each conversation is played.
    pub runs: u32,
    /// How many conversations at a time.
    pub concurrency: usize,
}

/// Plays `suite` with `player`; `manifest`: what fails. `done` is called after each conversation. The records stand in
/// the order of runs and of the suite.
pub async fn play(
    player: &Player,
    suite: &Arc<[Conversation]>,
    manifest: Option<&Arc<Manifest>>,
    extent: Extent,
    mut done: impl FnMut(),
) -> Vec<Record> {
    let all = (0..extent.runs).flat_map(|run| (0..suite.len()).map(move |index| (run, index)));
    let mut open = JoinSet::new();
    let mut records: Vec<((u32, usize), Record)> = Vec::new();
    for key in all {
        if extent.concurrency <= open.len() {
            records.extend(next(&mut open).await);
            done();
        }
        let (player, suite, manifest) = (player.clone(), Arc::clone(suite), manifest.cloned());
        open.spawn(async move {
            let (run, index) = key;
            let conversation = &suite[index];
            let plan = manifest.as_ref().and_then(|manifest| manifest.plan(&conversation.id));
            (key, player.play(conversation, plan, run).await)
        });
    }
    while !open.is_empty() {
        records.extend(next(&mut open).await);
        done();
    }
    records.sort_by_key(|(key, _)| *key);
    records.into_iter().map(|(_, record)| record).collect()
}

async fn next<T: 'static>(open: &mut JoinSet<T>) -> Option<T> {
    match open.join_next().await? {
        Ok(played) => Some(played),
        Err(error) => {
            tracing::error!(%error, "a conversation was not played to its end");
            None
        }
    }
}
