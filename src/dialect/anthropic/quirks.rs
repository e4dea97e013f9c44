//! What each Claude model takes, as data.
//!
//! Prefill is an allow-list: every model since 4.6 refuses it, so a name that this table does not know is denied; the
//! deny-lists of others went stale with each release. Sources: the vendor's migration guides for 4.6 to 5.5 and its
//! pages on thinking and effort, as of November 2026.

/// What is known of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Model {
    /// It continues a trailing assistant message.
    pub(super) prefill: bool,
    /// Which sampling parameters it takes.
    pub(super) sampling: Sampling,
    /// How thinking is asked for.
    pub(super) thinking: Thinking,
    /// How it is asked to think least.
    pub(super) least: Least,
    /// It may be made to call a tool.
    pub(super) forced_tools: bool,
    /// It takes `output_config.format`.
    pub(super) structured: bool,
    /// It takes `output_config.effort`.
    pub(super) effort: bool,
    /// It knows the effort `xhigh`.
    pub(super) xhigh: bool,
}

/// Which of `temperature`, `top_p` and `top_k` a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sampling {
    /// All of them.
    Free,
    /// `temperature` or `top_p`, not both.
    One,
    /// None: they answer 400.
    None,
}

/// How thinking is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thinking {
    /// It does not think.
    None,
    /// With a budget of tokens.
    Budget,
    /// With a budget, or adaptive.
    Either,
    /// Adaptive only; a budget answers 400.
    Adaptive,
}

/// How a model is asked to think least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Least {
    /// By leaving `thinking` out.
    Omit,
    /// By `thinking: {type: disabled}`, with an effort of `high` at most.
    Disable,
    /// By `thinking: {type: between_tools}`.
    BetweenTools,
    /// By the lowest effort; it cannot be turned off.
    Low,
}

/// A range of versions of the families named; no family means all.
struct Row {
    families: &'static [&'static str],
    from: Version,
    to: Version,
    model: Model,
}

/// Major and minor.
type Version = (u32, u32);

// === the table ===

const CLAUDE_3: Model = Model {
    prefill: true,
    sampling: Sampling::Free,
    thinking: Thinking::None,
    least: Least::Omit,
    forced_tools: true,
    structured: false,
    effort: false,
    xhigh: false,
};
const CLAUDE_3_7: Model = Model { thinking: Thinking::Budget, ..CLAUDE_3 };
const CLAUDE_4_1: Model = Model { sampling: Sampling::One, structured: true, ..CLAUDE_3_7 };
const OPUS_4_5: Model = Model { effort: true, ..CLAUDE_4_1 };
const CLAUDE_4_6: Model = Model { prefill: false, thinking: Thinking::Either, ..OPUS_4_5 };
const CLAUDE_4_7: Model = Model { sampling: Sampling::None, thinking: Thinking::Adaptive, xhigh: true, ..CLAUDE_4_6 };
const CLAUDE_5: Model = Model { least: Least::Disable, ..CLAUDE_4_7 };
const SONNET_5_5: Model = Model { least: Least::BetweenTools, forced_tools: false, ..CLAUDE_5 };
/// What thinks always, and every Claude that is newer than this table.
const NEWEST: Model = Model { least: Least::Low, forced_tools: false, ..CLAUDE_5 };
/// Other vendors' models behind this API: nothing is taken from the request, and nothing is presumed.
const FOREIGN: Model = Model { prefill: false, structured: true, thinking: Thinking::Budget, ..CLAUDE_3 };

const SIZES: &[&str] = &["opus", "sonnet", "haiku"];

/// The first row that fits holds.
const ROWS: &[Row] = &[
    Row { families: &["instant"], from: (0, 0), to: (9, 9), model: CLAUDE_3 },
    Row { families: &[], from: (1, 0), to: (3, 6), model: CLAUDE_3 },
    Row { families: &[], from: (3, 7), to: (3, 9), model: CLAUDE_3_7 },
    Row { families: SIZES, from: (4, 0), to: (4, 0), model: CLAUDE_3_7 },
    Row { families: &["opus"], from: (4, 1), to: (4, 1), model: CLAUDE_4_1 },
    Row { families: &["opus"], from: (4, 5), to: (4, 5), model: OPUS_4_5 },
    Row { families: &["sonnet", "haiku"], from: (4, 5), to: (4, 5), model: CLAUDE_4_1 },
    Row { families: SIZES, from: (4, 6), to: (4, 6), model: CLAUDE_4_6 },
    Row { families: SIZES, from: (4, 7), to: (4, 99), model: CLAUDE_4_7 },
    Row { families: SIZES, from: (5, 0), to: (5, 0), model: CLAUDE_5 },
    Row { families: &["sonnet"], from: (5, 5), to: (5, 5), model: SONNET_5_5 },
    Row { families: &["haiku"], from: (5, 5), to: (5, 5), model: CLAUDE_5 },
];

// === helpers ===

/// What is known of the model of that name, however a cloud spells it: `claude-sonnet-4-20250514`,
/// `us.anthropic.claude-opus-4-5-20251101-v1:0`, `claude-haiku-4-5@20251001`, `anthropic/claude-opus-4.1`.
pub(super) fn model(name: &str) -> Model {
    let name = name.to_ascii_lowercase();
    let Some((_, rest)) = name.rsplit_once("claude") else { return FOREIGN };
    let (family, version) = dissect(rest);
    let fits = |row: &&Row| {
        (row.families.is_empty() || row.families.contains(&family))
            && (row.families == ["instant"] || version.is_some_and(|v| row.from <= v && v <= row.to))
    };
    ROWS.iter().find(fits).map_or(NEWEST, |row| row.model)
}

/// Family and version of what follows `claude` in a name. The number may come before the family (`-3-5-sonnet`) or
/// after it (`-sonnet-4-5`); a date, or a revision such as `v2` behind a number, ends it.
fn dissect(rest: &str) -> (&str, Option<Version>) {
    let mut family = "";
    let mut numbers: [Option<u32>; 2] = [None, None];
    for token in rest.split(|c: char| !c.is_ascii_alphanumeric()).filter(|t| !t.is_empty()) {
        let bare = token.strip_prefix('v').filter(|t| t.starts_with(|c: char| c.is_ascii_digit()));
        if bare.is_some() && numbers[0].is_some() {
            break;
        }
        match bare.unwrap_or(token).parse::<u32>() {
            Ok(number) if number < 100 => match numbers {
                [None, _] => numbers[0] = Some(number),
                [_, None] => numbers[1] = Some(number),
                _ => break,
            },
            Ok(_) => break,
            Err(_) if family.is_empty() => family = token,
            Err(_) => {}
        }
    }
    (family, numbers[0].map(|major| (major, numbers[1].unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::{FOREIGN, Least, NEWEST, Sampling, Thinking, model};

    #[test]
    fn prefill_is_allowed_up_to_four_five_in_all_spellings() {
        for name in [
            "claude-2",
            "claude-2.1",
            "claude-instant-1.2",
            "claude-instant-v1",
            "anthropic.claude-v2:1",
            "claude-3-opus-20240229",
            "claude-3-haiku@20240307",
            "claude-3-5-sonnet-latest",
            "us.anthropic.claude-3-5-sonnet-20241022-v2:0",
            "claude-3.7-sonnet",
            "claude-opus-4-0",
            "claude-opus-4-1-20250805",
            "claude-opus-4-20250514",
            "claude-sonnet-4",
            "claude-sonnet-4-0",
            "claude-sonnet-4-20250514",
            "claude-sonnet-4@20250514",
            "eu.anthropic.claude-sonnet-4-20250514-v1:0",
            "claude-sonnet-4-5-20250929",
            "claude-opus-4-5-20251101",
            "us.anthropic.claude-opus-4-5-20251101-v1:0",
            "claude-haiku-4-5",
            "anthropic/claude-haiku-4.5",
            "anthropic/claude-4.5-sonnet",
            "CLAUDE-HAIKU-4-5-20251001",
            "vertex_ai/claude-opus-4-1@20250805",
        ] {
            assert!(model(name).prefill, "{name}");
        }
    }

    #[test]
    fn prefill_is_denied_from_four_six_on_and_to_strangers() {
        for name in [
            "claude-opus-4-6",
            "claude-sonnet-4-6-20260217",
            "claude-opus-4-6-v1",
            "us.anthropic.claude-opus-4-7-v1:0",
            "claude-opus-4-8",
            "anthropic/claude-opus-4.8",
            "claude-opus-5",
            "claude-sonnet-5-20260701",
            "claude-opus-5-5",
            "claude-haiku-5-5",
            "claude-fable-5-1",
            "claude-mythos-preview",
            "claude-opus-4-10",
            "claude-opus-latest",
            "claude",
            "kimi-k2",
            "m-b",
            "",
        ] {
            assert!(!model(name).prefill, "{name}");
        }
    }

    #[test]
    fn rows_say_what_each_generation_takes() {
        assert_eq!(model("claude-3-5-haiku-20241022").thinking, Thinking::None);
        assert_eq!(model("claude-3-7-sonnet-20250219").thinking, Thinking::Budget);
        assert_eq!(model("claude-opus-4-1").sampling, Sampling::One);
        assert_eq!(model("claude-sonnet-4-20250514").sampling, Sampling::Free);
        assert_eq!(model("claude-sonnet-4-6").thinking, Thinking::Either);
        assert_eq!(model("claude-opus-4-7").sampling, Sampling::None);
        assert_eq!(model("claude-opus-4-7").least, Least::Omit);
        assert_eq!(model("claude-opus-5").least, Least::Disable);
        assert_eq!(model("claude-sonnet-5-5").least, Least::BetweenTools);
        assert_eq!(model("claude-opus-5-5"), NEWEST);
        assert_eq!(model("claude-fable-5-1"), NEWEST);
        assert_eq!(model("claude-haiku-6"), NEWEST);
        assert_eq!(model("deepseek-chat"), FOREIGN);
        assert!(model("claude-opus-4-5").effort && !model("claude-haiku-4-5").effort);
    }
}
