//! What a message may hold besides text.

use super::{DialectId, Message, Part, Request, Role};

/// A kind of content that not every model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Modality {
    /// Pictures.
    Image,
    /// Sound.
    Audio,
    /// Documents.
    File,
    /// Moving pictures.
    Video,
}

/// A set of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Modalities(u8);

// === impl Modality ===

impl Modality {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Image, Self::Audio, Self::File, Self::Video];

    /// Its name in the configuration and in messages for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Audio => "audio",
            Self::File => "file",
            Self::Video => "video",
        }
    }

    /// What a content part of that type is, in the names that the dialects have for it.
    pub fn of_type(kind: &str) -> Option<Self> {
        Some(match kind {
            "image_url" | "image" | "input_image" => Self::Image,
            "input_audio" | "audio_url" | "audio" => Self::Audio,
            "file" | "input_file" | "document" | "document_url" => Self::File,
            "video_url" | "video" | "input_video" => Self::Video,
            _ => return None,
        })
    }

    fn bit(self) -> u8 {
        match self {
            Self::Image => 1,
            Self::Audio => 2,
            Self::File => 4,
            Self::Video => 8,
        }
    }
}

// === impl Modalities ===

impl Modalities {
    /// Every kind.
    pub const ALL: Self = Self(15);
    /// None.
    pub const NONE: Self = Self(0);

    /// Whether `modality` is one of them.
    pub fn has(self, modality: Modality) -> bool {
        self.0 & modality.bit() != 0
    }

    /// The same with `modality`.
    #[must_use]
    pub fn with(self, modality: Modality) -> Self {
        Self(self.0 | modality.bit())
    }

    /// Those that are in either.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of them that are not in `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Those that are in both.
    #[must_use]
    pub fn shared(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The kinds, in the order of [`Modality::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Modality> {
        Modality::ALL.into_iter().filter(move |modality| self.has(*modality))
    }
}

impl FromIterator<Modality> for Modalities {
    fn from_iter<I: IntoIterator<Item = Modality>>(kinds: I) -> Self {
        kinds.into_iter().fold(Self::NONE, Self::with)
    }
}

// === impl Request ===

impl Request {
    /// What is asked in besides text: the kinds of content behind the model's last answer. An answer to a question that
    /// lacks them would be an answer to another question.
    pub fn asked_in(&self) -> Modalities {
        let asked = self.messages.iter().rev().take_while(|message| message.role != Role::Assistant);
        asked.flat_map(kinds).collect()
    }

    /// Whether something of the question can be said in `dialect`. A question of which nothing is left would be answered
    /// all the same, and the answer would be to something else.
    pub fn asks_in(&self, dialect: DialectId) -> bool {
        let asked = self.messages.iter().rev().take_while(|message| message.role != Role::Assistant);
        let (mut sayable, mut foreign) = (false, false);
        for part in asked.flat_map(|message| &message.parts) {
            match part {
                Part::Other(of, _) if *of != dialect => foreign = true,
                Part::Text { text, .. } => sayable |= !text.trim().is_empty(),
                _ => sayable = true,
            }
        }
        sayable || !foreign
    }

    /// What it holds besides text, its history included.
    pub fn holds(&self) -> Modalities {
        self.messages.iter().flat_map(kinds).collect()
    }
}

// === helpers ===

fn kinds(message: &Message) -> impl Iterator<Item = Modality> {
    let inner = message.parts.iter().flat_map(|part| match part {
        Part::ToolResult { parts, .. } => &parts[..],
        _ => &[],
    });
    message.parts.iter().chain(inner).filter_map(kind)
}

fn kind(part: &Part) -> Option<Modality> {
    match part {
        Part::Image(_) => Some(Modality::Image),
        Part::Document(_) => Some(Modality::File),
        Part::Other(_, value) => Modality::of_type(value.get("type")?.as_str()?),
        _ => None,
    }
}
