//! Every break over a real connection, and what it is called in signals.

#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::client::{End, ask, ask_endless, question};
use super::heard;
use crate::event::Signal;
use crate::failure::Kind;
use crate::rig::origin::{Fate, Origin, Scripts};
use crate::rig::script::{Break, Close, Form, Script, Wrong};
use crate::rig::signals;
use crate::rig::wire::Api;
use crate::turn::resume::Carry;
use std::time::Duration;

const TEXT: &str = "One two three four five";

fn script(how: Break) -> Script {
    Script::telling(TEXT).breaking(2, how)
}

async fn got(script: Script, api: Api) -> (super::client::Got, heard::Heard, crate::rig::origin::Record) {
    let origin = Origin::local(Scripts::fixed(script.clone())).await.unwrap();
    let ends =
        !matches!(script.fault.as_ref().map(|f| &f.how), Some(Break::Silence | Break::HalfEvent { then: Close::Hold }));
    let got = match ends {
        true => ask(origin.addr, api, &question()).await,
        false => ask_endless(origin.addr, api, &question()).await,
    };
    let heard = heard::read(api, &got.body);
    assert!(origin.records().until(Duration::from_secs(10), |all| all[0].fate != Fate::Open).await);
    let record = origin.records().get(0).unwrap();
    (got, heard, record)
}

fn kind(script: &Script) -> Option<Kind> {
    signals::timeline(script, &Carry::fresh(), 1).iter().find_map(|(_, signal)| match signal {
        Signal::Failed(failure) => Some(failure.kind),
        _ => None,
    })
}

/// In place of token 2: how the connection ends, what the signals call it, and whether the script came to its end.
#[tokio::test]
async fn each_break_ends_the_connection_as_it_says() {
    let every = Duration::from_millis(30);
    let error = |wrong| Break::ErrorEvent { wrong, form: Form::Object, done: false };
    let table = [
        (Break::Reset, End::Reset, Some(Kind::Reset), Fate::Told),
        (Break::Fin, End::Fin, Some(Kind::Reset), Fate::Told),
        (Break::CleanEnd, End::Whole, Some(Kind::Truncated), Fate::Told),
        (Break::HalfEvent { then: Close::Reset }, End::Reset, Some(Kind::Reset), Fate::Told),
        (Break::HalfEvent { then: Close::Fin }, End::Fin, Some(Kind::Reset), Fate::Told),
        (Break::HalfEvent { then: Close::End }, End::Whole, Some(Kind::Truncated), Fate::Told),
        (Break::HalfEvent { then: Close::Hold }, End::Open, None, Fate::Cancelled),
        (Break::HalfChar { then: Close::End }, End::Whole, Some(Kind::Truncated), Fate::Told),
        (error(Wrong::Overloaded), End::Whole, Some(Kind::Overloaded), Fate::Told),
        (error(Wrong::RateLimited), End::Whole, Some(Kind::RateLimited), Fate::Told),
        (Break::Silence, End::Open, None, Fate::Cancelled),
        (Break::Garbage, End::Whole, Some(Kind::Malformed), Fate::Told),
        (Break::Dribble { gap: every }, End::Whole, None, Fate::Told),
    ];
    for (how, end, failed, fate) in table {
        for api in Api::ALL {
            let script = script(how.clone());
            let what = format!("{how:?} {api:?}");
            assert_eq!(kind(&script), failed, "{what}");
            let (got, heard, record) = got(script, api).await;
            assert_eq!((got.end, record.fate), (end, fate), "{what}");
            let all = matches!(how, Break::Dribble { .. } | Break::Garbage);
            let told = if all { TEXT } else { "One two" };
            assert_eq!(heard.texts.get(&0).map(String::as_str), Some(told), "{what}");
            assert_eq!(heard.finishes.is_empty(), !all, "{what}");
            assert_eq!(record.tokens, if all { 5 } else { 2 }, "{what}");
        }
    }
}

#[tokio::test]
async fn half_an_event_is_less_than_one_and_half_a_character_too() {
    for api in Api::ALL {
        let (_, heard, _) = got(script(Break::HalfEvent { then: Close::End }), api).await;
        assert!(!heard.rest.is_empty() && std::str::from_utf8(&heard.rest).is_ok());
        let whole: &[u8] = if api == Api::Chat { b"data: {" } else { b"event: content_block_delta" };
        assert!(heard.rest.starts_with(whole), "{api:?}");
        for text in ["One two", "One tö"] {
            let script =
                Script::of_pieces(vec!["x".into(), text.into()]).breaking(1, Break::HalfChar { then: Close::End });
            let (_, heard, _) = got(script, api).await;
            let error = std::str::from_utf8(&heard.rest).unwrap_err();
            assert_eq!((error.valid_up_to(), error.error_len()), (heard.rest.len() - 1, None), "{api:?} {text}");
        }
    }
}

#[tokio::test]
async fn error_events_have_the_forms_of_their_api() {
    let event = |form, done| Break::ErrorEvent { wrong: Wrong::Overloaded, form, done };
    let last = |body: &[u8], back: usize| {
        let (events, _) = heard::events(body);
        events[events.len() - back].clone()
    };
    let (got_, _, _) = got(script(event(Form::Object, true)), Api::Chat).await;
    assert_eq!(last(&got_.body, 1).1, "[DONE]");
    let json: serde_json::Value = serde_json::from_str(&last(&got_.body, 2).1).unwrap();
    assert_eq!((json["error"]["type"].as_str(), json.get("choices")), (Some("server_error"), None));

    let (got_, _, _) = got(script(event(Form::Text, false)), Api::Chat).await;
    let json: serde_json::Value = serde_json::from_str(&last(&got_.body, 1).1).unwrap();
    assert!(json["error"].is_string());

    let (got_, _, _) = got(script(event(Form::Finish, false)), Api::Chat).await;
    let json: serde_json::Value = serde_json::from_str(&last(&got_.body, 1).1).unwrap();
    assert_eq!(json["choices"][0]["finish_reason"], "error");
    assert_eq!(json["error"]["metadata"]["error_type"], "provider_overloaded");

    let (got_, _, _) = got(script(event(Form::Object, false)), Api::Anthropic).await;
    let (name, data) = last(&got_.body, 1);
    let json: serde_json::Value = serde_json::from_str(&data).unwrap();
    assert_eq!((name.as_str(), json["error"]["type"].as_str()), ("error", Some("overloaded_error")));
}

#[tokio::test]
async fn pings_go_on_and_say_nothing() {
    for api in Api::ALL {
        let every = Duration::from_millis(10);
        let origin = Origin::local(Scripts::fixed(script(Break::PingsOnly { every }))).await.unwrap();
        let mut client = super::client::Client::to(origin.addr).await;
        client.send(api, &question()).await;
        client.read_some(3000).await;
        drop(client);
        assert!(origin.records().until(Duration::from_secs(10), |all| all[0].fate == Fate::Cancelled).await);
        let record = origin.records().get(0).unwrap();
        assert_eq!(record.tokens, 2);
        assert!(record.lasted().unwrap() > Duration::from_millis(50));
    }
    let signals = signals::timeline(&script(Break::PingsOnly { every: Duration::from_secs(1) }), &Carry::fresh(), 1);
    let after = signals.iter().rev().take(120).filter(|(_, s)| matches!(s, Signal::Step(s) if !s.is_progress()));
    assert_eq!(after.count(), 120);
}

#[tokio::test]
async fn a_dribble_is_slow_from_its_token_on() {
    let script = script(Break::Dribble { gap: Duration::from_millis(40) });
    let (_, heard, record) = got(script.clone(), Api::Chat).await;
    assert_eq!(heard.texts[&0], TEXT);
    assert!(record.lasted().unwrap() >= Duration::from_millis(120), "three tokens of 40 ms");
    let signals = signals::timeline(&script, &Carry::fresh(), 1);
    assert_eq!(signals.last().unwrap().0, Duration::from_millis(120));
}

#[tokio::test]
async fn breaks_at_either_end_of_a_turn() {
    for (at, text, finished, kind_) in [
        (0, None, false, Some(Kind::Reset)),
        (5, Some(TEXT), false, Some(Kind::Reset)),
        (6, Some(TEXT), true, Some(Kind::Reset)),
        (99, Some(TEXT), true, Some(Kind::Reset)),
    ] {
        let script = Script::telling(TEXT).breaking(at, Break::Reset);
        assert_eq!(kind(&script), kind_);
        for api in Api::ALL {
            let (got, heard, _) = got(script.clone(), api).await;
            assert_eq!(got.end, End::Reset);
            assert!(heard.opened && !heard.done);
            assert_eq!(heard.texts.get(&0).map(String::as_str), text);
            assert_eq!(!heard.finishes.is_empty(), finished, "{at} {api:?}");
        }
    }
}
