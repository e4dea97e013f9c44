//! What is settled by looking.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::{By, Verdict, audit, quick, verdicts};
use crate::bench::continuity::record::{End, Heard, Record};
use crate::bench::continuity::suite::{self, Conversation};
use serde_json::Value;

fn about(fact: &str) -> Conversation {
    Conversation { expected_fact: fact.to_owned(), ..suite::committed().remove(0) }
}

fn heard(text: &str) -> Heard {
    Heard { text: text.to_owned(), end: End::Finished, ..Heard::default() }
}

#[test]
fn facts_are_found_in_whatever_form_they_stand() {
    let kept = [
        ("smoked juniper", "You like Smoked\n  JUNIPER best."),
        ("4217", "It is 4217."),
        ("4217", "It is 4,217 grams."),
        ("17 October", "On the 17 October."),
        ("17 October", "On October 17th, as you said."),
        ("17 October", "On the 17th of October."),
        ("17 October", "October 17, 2031"),
        ("October 17", "the 17th of October"),
        ("Ilsa Zvelmix", "Her name is Ilsa Zvelmix, the vet."),
    ];
    for (fact, answer) in kept {
        assert_eq!(quick(&about(fact), &heard(answer)), Some(true), "{fact}: {answer}");
    }
    let open = [
        ("4217", "It is 14217."),
        ("4217", "It is 42170."),
        ("4217", "It is 4,2,1,7."),
        ("17 October", "On the 7 October."),
        ("17 October", "On October 171."),
        ("smoked juniper", "You like juniper, smoked."),
        ("4217", "I do not know."),
    ];
    for (fact, answer) in open {
        assert_eq!(quick(&about(fact), &heard(answer)), None, "{fact}: {answer}");
    }
}

#[test]
fn what_is_no_answer_kept_nothing() {
    let conversation = about("4217");
    for answer in ["", "  \n", "Error: 4217 happened", "{\"error\": {\"code\": 4217}}", "Rate limit exceeded: 4217"] {
        assert_eq!(quick(&conversation, &heard(answer)), Some(false), "{answer}");
    }
    let told = Heard { end: End::Error("502".into()), ..heard("It is 4217.") };
    assert_eq!(quick(&conversation, &told), Some(false));
    assert_eq!(quick(&conversation, &Heard { end: End::Cut, ..heard("It is 4217.") }), Some(false));
    // A model may well speak of errors.
    assert_eq!(quick(&conversation, &heard("No error there: 4217.")), Some(true));
}

fn records() -> (Vec<Conversation>, Vec<Record>) {
    let suite = suite::committed();
    let record = |conversation: &Conversation| Record {
        system: "splice".into(),
        run: 0,
        conversation: conversation.id.clone(),
        length: conversation.turns.len(),
        fact_type: conversation.fact_type.clone(),
        turns: vec![Heard { turn: conversation.probe_turn_index, ..heard(&conversation.expected_fact) }],
    };
    let records = suite.iter().map(record).collect();
    (suite, records)
}

#[test]
fn every_record_gets_its_verdict() {
    let (suite, mut records) = records();
    records[1].turns[0].text = "No idea.".into();
    records[2].conversation = "unheard of".into();
    records[3].turns[0].turn = 0;
    records[4].turns.clear();
    let verdicts = verdicts(&suite, &records);
    let of = |preserved, by| Verdict { preserved, by, reasoning: String::new() };
    assert_eq!(verdicts[0], of(true, By::Search));
    assert_eq!(verdicts[1], of(false, By::Nobody));
    let no_answer = of(false, By::Search);
    assert_eq!(verdicts[2..5], [no_answer.clone(), no_answer.clone(), no_answer], "nobody answered the probe");
    assert!(verdicts[5..].iter().all(|verdict| *verdict == of(true, By::Search)));
}

#[test]
fn the_audit_is_a_sample_that_a_seed_repeats() {
    let (suite, records) = records();
    let verdicts = verdicts(&suite, &records);
    let lines = audit(&suite, &records, &verdicts, 12, 42);
    assert_eq!(lines, audit(&suite, &records, &verdicts, 12, 42));
    assert_ne!(lines, audit(&suite, &records, &verdicts, 12, 43));
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 12);
    for row in rows {
        assert_eq!(row["answer"], row["expected_fact"]);
        assert!(row["audit"].is_null() && row["preserved"] == true && row["by"] == "search");
    }
    assert_eq!(audit(&suite, &records, &verdicts, 1000, 1).lines().count(), 150);
}
