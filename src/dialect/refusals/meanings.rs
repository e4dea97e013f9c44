//! Meanings that are told in many words, as data; see [`super::table`].

use super::words::Word::{self, Any, Near, Not, Phrase, Then};

/// The model is not there.
pub(super) const MODEL: Word = Any(&[
    Then(
        &["model", "deployment", "engine", "inference profile"],
        &[
            "does not exist",
            "doesn't exist",
            "not exist",
            "not found",
            "decommissioned",
            "been deprecated",
            "been retired",
            "was retired",
            "is retired",
            "no longer available",
            "no longer supported",
            "is not available",
            "isn't available",
            "not a valid",
            "is not recognized",
            "end of life",
            "end of its life",
            "been removed",
            "was removed",
            "was sunset",
            "been sunset",
            "is disabled",
            "been shut down",
            "is not deployed",
            "不存在",
            "已下线",
            "未开通",
        ],
    ),
    Then(
        &["not a valid", "invalid", "no such", "unknown", "unsupported", "unable to find", "could not find"],
        &[" model id", " model:", " model name", " model identifier"],
    ),
    Phrase("model disabled"),
    Not(&Then(&["model"], &["is deprecated"]), &["parameter", "field", "for this model", "for the model"]),
    Phrase("no such model"),
    Phrase("unknown model"),
    Phrase("invalid model"),
    Phrase("unsupported model"),
    Phrase("not a valid model"),
    Phrase("model identifier is invalid"),
    Phrase("requested model is not supported"),
    Phrase("model is not supported"),
    Phrase("model not supported"),
]);

/// Something else is not there.
pub(super) const THING: Word = Then(
    &[
        "file",
        "previous response",
        "response with id",
        "item",
        "container",
        "session",
        "attachment",
        "cached content",
        "vector store",
    ],
    &["not found", "no such", "does not exist", "not exist"],
);

/// What this target does not take.
pub(super) const LACKS: Word = Any(&[
    Phrase("not support"),
    Phrase("unsupported"),
    Phrase("no endpoints found that"),
    Phrase("only support"),
    Phrase("unknown variant"),
    Phrase("unknown field"),
    Phrase("unknown parameter"),
    Phrase("unrecognized"),
    Phrase("unexpected keyword"),
    Phrase("extra inputs are not permitted"),
    Phrase("doesn't support"),
    Phrase("don't support"),
    Phrase("failed to deserialize"),
    Phrase("does not accept"),
    Phrase("is not enabled"),
    Phrase("enable auto tool choice"),
    Phrase("requires jinja"),
    Phrase("不支持"),
]);

/// More than the window holds. A limit of the answer that is too large is none.
pub(super) const LONG: &[Word] = &[
    Not(&Near(&[&["context"], OVER]), &["context management"]),
    Near(&[
        &["prompt", "input", "conversation", "sequence", "message", "request", "history"],
        &["too long", "too many tokens"],
    ]),
    Near(&[
        &["token"],
        &[
            "exceed",
            "too many",
            "too large",
            "longer than",
            "larger than",
            "greater than",
            "over the limit",
            "maximum allowed",
        ],
        &["prompt", "input", "conversation", "message", "request", "sequence", "model token limit", "upper limit"],
    ]),
    Near(&[
        &["maximum prompt length", "maximum input length", "maximum sequence length"],
        &["token", "prompt", "input"],
    ]),
    Near(&[&["prompt", "sequence", "conversation"], &["longer than", "larger than"], &["model", "maximum"]]),
    Near(&[&["prompt is", "prompt has", "prompt of"], &["token"], &["context"]]),
    Near(&[&["input characters", "input length", "maxlength"], &["max", "limit", "actual"]]),
    Phrase("than the model can"),
    Phrase("input is too large to process"),
    Phrase("fenêtre de contexte"),
    Phrase("ventana de contexto"),
    Phrase("kontextfenster"),
    Phrase("finestra di contesto"),
    Phrase("コンテキスト"),
    Phrase("컨텍스트"),
    // The names of the fields are in quotation marks.
    Near(&[&["input validation error"], &["tokens"], &["must be <="]]),
    Phrase("reduce the length"),
    Phrase("range of input length"),
    Phrase("too large for model"),
    Phrase("contextwindowexceeded"),
    Phrase("string too long"),
    Near(&[&["上下文", "输入", "prompt", "token", "文本", "长度"], &["超长", "超过", "超出", "过长"]]),
];

const OVER: &[&str] = &[
    "exceed",
    "too long",
    "too large",
    "overflow",
    "maximum",
    "limit",
    "longer than",
    "larger than",
    "greater than",
    "beyond",
    "available",
    "out of",
    "room for",
    "not fit",
    "n't fit",
];

/// Why a provider stops what it could do.
pub(super) const POLICY: &[&str] = &["safety", "polic", "moderation", "guideline", "harmful", "sensitive content"];

/// Codes of a request that is wrong, where no status says so.
pub(super) const WRONG: [&str; 6] =
    ["invalidrequest", "badrequest", "invalidargument", "validation", "invalidparam", "unprocessable"];
