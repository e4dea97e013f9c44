//! Every way to break, at every position of a turn, over real sockets: the client's text is exact, and its stream is one.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use futures::StreamExt;
use futures::stream;
use segue::rig::origin::Scripts;
use segue::rig::script::{Break, Close, Continuation, Form, Reject, Script, Wrong};
use serde_json::json;
use std::time::Duration;
use support::house::House;

/// Forty tokens with what makes joins hard: punctuation, a list, code, an accent, an emoji.
const PIECES: [&str; 40] = [
    "The",
    " quick",
    " brown",
    " fox",
    " jumps",
    " over",
    " the",
    " lazy",
    " dog",
    ".",
    "\n\n",
    "- ",
    "one",
    ",",
    " two",
    ";",
    "\n- ",
    "three",
    "\n\n",
    "```",
    "py\n",
    "def ",
    "f(",
    "x",
    "):",
    "\n",
    "    ",
    "return",
    " x",
    "\n",
    "```",
    "\n",
    "Ca",
    "fé",
    " 北京",
    " 👩‍🚀",
    " and",
    " so",
    " on",
    ".",
];

fn text() -> String {
    PIECES.concat()
}

fn telling() -> Script {
    Script::of_pieces(PIECES.iter().map(|p| (*p).to_owned()).collect())
}

fn breaks() -> Vec<Break> {
    vec![
        Break::Reset,
        Break::Fin,
        Break::CleanEnd,
        Break::HalfEvent { then: Close::Reset },
        Break::HalfEvent { then: Close::End },
        Break::HalfChar { then: Close::Fin },
        Break::ErrorEvent { wrong: Wrong::Overloaded, form: Form::Object, done: false },
        Break::ErrorEvent { wrong: Wrong::Server, form: Form::Text, done: true },
        Break::ErrorEvent { wrong: Wrong::RateLimited, form: Form::Finish, done: false },
        Break::Silence,
        Break::PingsOnly { every: Duration::from_millis(40) },
        Break::Garbage,
    ]
}

/// Clocks short enough that a silence does not make the test long, and long enough for a busy machine.
const CLOCKS: &str = "[timeouts]\nfirst_token = \"3s\"\nstall = \"600ms\"\nturn = \"60s\"\n";
/// A thousand deliberate failures are no reason to open a circuit here.
const PATIENT: &str = "[connections.a.breaker]\nconsecutive = 1000000\nerror_rate = 1.0\n";

async fn every_position(primary: &str, fallback: &str, behaviour: Continuation) {
    let breaks = breaks();
    let kinds = breaks.len();
    let faulty = Scripts::with(move |inquiry| {
        // The client says in `seed` which break it wants, and where.
        let which =
            inquiry.body["seed"].as_u64().or_else(|| inquiry.body["metadata"]["user_id"].as_str()?.parse().ok());
        let which = usize::try_from(which.unwrap_or_default()).unwrap_or_default();
        Ok(telling().breaking(which / kinds, breaks[which % kinds].clone()).into())
    });
    let settings = format!("{CLOCKS}{PATIENT}");
    let level = "retries = 0";
    let providers = vec![(primary, faulty), (fallback, Scripts::fixed(telling().continuing(behaviour)))];
    let house = House::of(providers, &settings, level).await;
    let house = &house;
    let all = (0..=PIECES.len()).flat_map(|at| (0..kinds).map(move |kind| at * kinds + kind));
    stream::iter(all)
        .for_each_concurrent(32, |which| async move {
            let heard = house.chat(&json!({"seed": which, "user": which.to_string()})).await;
            let what = format!("{primary}->{fallback}, {:?} at token {}", self::breaks()[which % kinds], which / kinds);
            heard.assert_whole(&what);
            assert_eq!(heard.text, text(), "{what}");
            assert_eq!(heard.finishes, ["stop"], "{what}");
        })
        .await;
    let asked = house.origins[1].records().total();
    assert!(asked as usize > kinds * PIECES.len() / 2, "the fallback was asked only {asked} times");
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_goes_on_at_chat() {
    every_position("chat", "chat", Continuation::Obedient).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_goes_on_at_anthropic() {
    every_position("chat", "anthropic", Continuation::Obedient).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropic_goes_on_at_chat() {
    every_position("anthropic", "chat", Continuation::Obedient).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fallback_that_starts_again_is_fast_forwarded() {
    every_position("chat", "chat", Continuation::Restart).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_all_are_dead_before_the_first_word_the_status_says_so() {
    let reject = |status| {
        Scripts::fixed(telling().rejecting(Reject::Error { status, headers: Default::default(), wrong: None }))
    };
    for (first, second, status) in
        [(500, 503, 502), (503, 529, 503), (429, 429, 429), (500, 400, 502), (429, 400, 429), (400, 503, 400)]
    {
        let house =
            House::of(vec![("chat", reject(first)), ("anthropic", reject(second))], CLOCKS, "retries = 0").await;
        let heard = house.chat(&json!({})).await;
        assert_eq!(heard.status, status, "{first} then {second}: {}", heard.body);
        assert!(heard.body["error"]["message"].is_string(), "{}", heard.body);
        assert_eq!(heard.headers.get("x-should-retry").unwrap(), "false");
        let attempts = heard.body["error"]["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), 2, "{}", heard.body);
        assert!(!heard.body.to_string().contains("secret"), "{}", heard.body);
    }
    let silent = || Scripts::fixed(telling().rejecting(Reject::NeverAnswers));
    let house = House::of(vec![("chat", silent()), ("chat", silent())], CLOCKS, "retries = 0").await;
    let heard = house.chat(&json!({})).await;
    assert_eq!(heard.status, 504, "{}", heard.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_all_are_dead_after_the_first_word_the_stream_says_so() {
    for how in breaks() {
        let broken = || Scripts::fixed(telling().breaking(4, how.clone()));
        let house = House::of(vec![("chat", broken()), ("chat", broken())], CLOCKS, "retries = 0").await;
        let heard = house.chat(&json!({})).await;
        assert_eq!((heard.status, heard.done, heard.finishes.len()), (200, 0, 0), "{how:?}: {heard:?}");
        assert_eq!(heard.errors.len(), 1, "{how:?}");
        assert!(text().starts_with(&heard.text) && heard.text.len() >= 19, "{how:?}: {:?}", heard.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_answer_survives_as_a_stream_does() {
    let faulty = Scripts::fixed(telling().breaking(17, Break::Reset));
    let house =
        House::of(vec![("chat", faulty), ("anthropic", Scripts::fixed(telling()))], CLOCKS, "retries = 0").await;
    let heard = house.chat(&json!({"stream": false})).await;
    assert_eq!(heard.status, 200, "{}", heard.body);
    assert_eq!(heard.body["choices"][0]["message"]["content"], text());
    assert_eq!(heard.body["choices"][0]["finish_reason"], "stop");
    assert_eq!(heard.headers.get("x-segue-splices").unwrap(), "1");
    assert_eq!(heard.headers.get("x-segue-attempts").unwrap(), "2");
}
