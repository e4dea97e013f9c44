//! Conversations that tell a fact, talk of something else, and ask for the fact.

use serde::{Deserialize, Serialize};

/// One conversation, in the form of the public benchmark's data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Its name, unique in a suite.
    pub id: String,
    /// User and assistant in turn; the first and the last are the user's.
    pub turns: Vec<Message>,
    /// The index in `turns` of the message that tells the fact.
    pub fact_turn_index: usize,
    /// The index in `turns` of the message that asks for it.
    pub probe_turn_index: usize,
    /// What an answer must hold to have kept the fact.
    pub expected_fact: String,
    /// What kind of fact it is: `preference`, `invented_term`, `proper_name`, `number`, `date`, or another's own word.
    pub fact_type: String,
}

/// One message of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: String,
}

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The one who asks.
    User,
    /// The one who answers. While a conversation is played, what is there is replaced by what was heard.
    Assistant,
    /// Instructions, before anything else.
    System,
}
