//! Judges on a socket: a good one, bad ones and one that is not there.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::{Case, EXAMPLES, Judge, Ruling, request, ruling};
use crate::bench::continuity::judge::{By, Verdict, quick, verdicts};
use crate::bench::continuity::record::{End, Heard, Record};
use crate::bench::continuity::suite::{self, Conversation};
use crate::bench::stats::Share;
use crate::rig::origin::{Origin, Scripts};
use crate::rig::script::{Reject, Script};
use serde_json::{Value, json};
use std::sync::Arc;

/// A judge that rules as `rule` says on what it is shown.
async fn playing(rule: fn(&str, &str) -> bool) -> Origin {
    let scripts = Scripts::with(move |inquiry| {
        let shown = inquiry.body["messages"][1]["content"].as_str().unwrap_or_default();
        let shown: Value = serde_json::from_str(shown).unwrap_or_default();
        let keys: Vec<&String> = shown.as_object().map(|shown| shown.keys().collect()).unwrap_or_default();
        assert_eq!(keys, ["fact", "question", "answer"], "it sees nothing else");
        let of = |name: &str| shown[name].as_str().unwrap_or_default().to_owned();
        let preserved = rule(&of("fact"), &of("answer"));
        let text = json!({"reasoning": "so it seems", "preserved": preserved}).to_string();
        Ok(Arc::new(Script::telling(&text)))
    });
    Origin::local(scripts).await.unwrap()
}

fn judge(origin: &Origin) -> Judge {
    Judge::new(&origin.base_url(), "judge-1", Some("secret")).unwrap()
}

/// As people did; what they never saw is kept if it has a word of the fact in it.
fn good(fact: &str, answer: &str) -> bool {
    let label = EXAMPLES.iter().find(|(case, _)| (case.fact, case.answer) == (fact, answer));
    label.map_or_else(|| fact.split(' ').any(|word| answer.contains(word)), |(_, label)| *label)
}

/// The suite, and two runs of it: of each conversation a full answer, and one that the search cannot decide.
fn played() -> (Vec<Conversation>, Vec<Record>) {
    let suite: Vec<Conversation> = suite::committed().into_iter().take(4).collect();
    let mut records = Vec::new();
    for run in 0..2 {
        for conversation in &suite {
            let fact = &conversation.expected_fact;
            let text =
                if run == 0 { format!("It is {fact}.") } else { fact.split(' ').next_back().unwrap().to_owned() };
            let turn = conversation.probe_turn_index;
            let heard = Heard { turn, text, end: End::Finished, ..Heard::default() };
            records.push(Record {
                system: "splice".into(),
                run,
                conversation: conversation.id.clone(),
                length: turn + 1,
                fact_type: conversation.fact_type.clone(),
                turns: vec![heard],
            });
        }
    }
    // One without an end, and one that knows nothing.
    records[6].turns[0].end = End::Cut;
    records[7].turns[0].text = "I do not know.".into();
    (suite, records)
}

#[tokio::test]
async fn a_good_judge_decides_what_the_search_left_open() {
    let origin = playing(good).await;
    let (suite, records) = played();
    let mut verdicts = verdicts(&suite, &records);
    let before: Vec<By> = verdicts.iter().map(|verdict| verdict.by).collect();
    let agreement = judge(&origin).review(&suite, &records, &mut verdicts, 42).await.unwrap();
    assert_eq!((agreement.calibration, agreement.agreement), (Share::new(20, 20).unwrap(), Share::new(5, 5)));
    // An invented term and what it is known by are one word; the answer that was cut is none.
    let open: Vec<usize> = (0..8).filter(|&index| before[index] == By::Nobody).collect();
    assert_eq!((open.as_slice(), agreement.asked, agreement.unruled), (&[4, 7][..], 2, 0), "{agreement}");
    for index in open {
        assert_eq!(verdicts[index].by, By::Model, "{index}");
        assert_eq!(verdicts[index].preserved, index != 7, "{index}");
        assert_eq!(verdicts[index].reasoning, "so it seems");
    }
    assert!(verdicts[..4].iter().all(|verdict| verdict.by == By::Search && verdict.preserved));
    let words = agreement.to_string();
    assert!(words.contains("20 of 20 examples") && words.contains("5 of 5"), "{words}");
    origin.stop().await;
}

#[tokio::test]
async fn a_bad_judge_is_refused_and_changes_nothing() {
    for rule in [(|_, _| true) as fn(&str, &str) -> bool, |fact, answer| !good(fact, answer)] {
        let origin = playing(rule).await;
        let (suite, records) = played();
        let mut verdicts = verdicts(&suite, &records);
        let before: Vec<Verdict> = verdicts.clone();
        let why = judge(&origin).review(&suite, &records, &mut verdicts, 42).await.unwrap_err();
        assert!(why.contains("90.0 % are needed") && why.contains("it took"), "{why}");
        assert_eq!(verdicts, before);
        assert_eq!(origin.records().all().len(), EXAMPLES.len(), "nothing but the examples was asked");
        origin.stop().await;
    }
}

#[tokio::test]
async fn a_judge_that_is_not_there_or_talks_nonsense_is_refused_with_the_reason() {
    let nonsense = Origin::local(Scripts::fixed(Script::telling("Yes, I think so."))).await.unwrap();
    let why = judge(&nonsense).calibrate().await.unwrap_err();
    assert!(why.contains("0 of 20") && why.contains("no ruling with `preserved`"), "{why}");
    let key = Script::telling("").rejecting(Reject::Error { status: 401, headers: [].into(), wrong: None });
    let locked = Origin::local(Scripts::fixed(key)).await.unwrap();
    let why = judge(&locked).calibrate().await.unwrap_err();
    assert!(why.contains("status 401") && !why.contains("secret"), "{why}");
    let gone = judge(&locked);
    locked.stop().await;
    let why = gone.calibrate().await.unwrap_err();
    assert!(why.contains("no connection"), "{why}");
    nonsense.stop().await;
}

#[test]
fn the_examples_are_half_and_half_and_all_different() {
    assert_eq!(EXAMPLES.iter().filter(|(_, label)| *label).count(), 10);
    for (index, (case, _)) in EXAMPLES.iter().enumerate() {
        assert!(EXAMPLES[..index].iter().all(|(other, _)| other != case), "{case}");
    }
}

#[test]
fn the_search_contradicts_no_example_and_cannot_decide_all() {
    let mut open = 0;
    for (case, label) in EXAMPLES {
        let conversation = Conversation { expected_fact: case.fact.into(), ..suite::committed().remove(0) };
        let heard = Heard { text: case.answer.into(), end: End::Finished, ..Heard::default() };
        match quick(&conversation, &heard) {
            Some(found) => assert_eq!(found, label, "{case}"),
            None => open += usize::from(label),
        }
    }
    assert!(open >= 5, "only {open} kept facts are beyond the search");
}

#[test]
fn structured_output_is_asked_for_and_read_even_from_a_fence() {
    let case = Case { fact: "f", probe: "p", answer: "a" };
    let asked = request("m", case);
    assert_eq!(asked["response_format"]["json_schema"]["schema"]["required"], json!(["reasoning", "preserved"]));
    assert_eq!(asked["temperature"], 0);
    let with = |content: &str| json!({"choices": [{"message": {"content": content}}]}).to_string();
    let want = Ruling { preserved: true, reasoning: "x".into() };
    for content in
        [r#"{"preserved":true,"reasoning":"x"}"#, "```json\n{\"reasoning\": \"x\", \"preserved\": true}\n```"]
    {
        assert_eq!(ruling(with(content).as_bytes()).unwrap(), want);
    }
    assert!(ruling(with("yes").as_bytes()).unwrap_err().contains("no ruling"));
    assert!(ruling(b"{}").unwrap_err().contains("choices[0]"));
}
