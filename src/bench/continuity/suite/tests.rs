//! The suite is what it is said to be, and files are read or refused.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::facts::Kind;
use super::{
    Conversation, FILLERS, Role, SEED, VERSION, Written, committed, generate, generate_oblique, oblique, read,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn written(conversations: &[Conversation]) -> String {
    let mut text = serde_json::to_string_pretty(&Written { version: VERSION, seed: SEED, conversations }).unwrap();
    text.push('\n');
    text
}

/// With `WRITE_CONTINUITY=1` the files are written anew.
#[test]
fn the_generator_makes_exactly_what_is_committed() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/data");
    for (name, suite) in [("continuity", generate(SEED)), ("continuity-oblique", generate_oblique(SEED))] {
        let file = data.join(format!("{name}-v{VERSION}.json"));
        if std::env::var_os("WRITE_CONTINUITY").is_some() {
            std::fs::write(&file, written(&suite)).unwrap();
        }
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text == written(&suite), "{} is not what the generator makes; raise VERSION", file.display());
        assert_eq!(read(&text).unwrap(), suite);
    }
    assert_eq!((committed(), oblique()), (generate(SEED), generate_oblique(SEED)));
}

#[test]
fn there_are_as_many_of_each_length_and_kind_as_promised() {
    for seed in [SEED, 0, 7] {
        let suite = generate(seed);
        let (mut lengths, mut kinds) = (BTreeMap::new(), BTreeMap::new());
        for conversation in &suite {
            *lengths.entry(conversation.turns.len()).or_insert(0) += 1;
            *kinds.entry(conversation.fact_type.clone()).or_insert(0) += 1;
            assert_eq!(conversation.probe_turn_index, conversation.turns.len() - 1);
        }
        assert_eq!(lengths, BTreeMap::from([(7, 44), (9, 58), (11, 48)]));
        assert_eq!(kinds, Kind::ALL.map(|kind| (kind.name().to_owned(), 30)).into());
    }
}

#[test]
fn a_fact_stands_in_its_own_first_message_and_nowhere_else() {
    for seed in [SEED, 1, 2, 3] {
        for suite in [generate(seed), generate_oblique(seed)] {
            for told in &suite {
                let fact = told.expected_fact.to_lowercase();
                for heard in &suite {
                    for (index, message) in heard.turns.iter().enumerate() {
                        let own = heard.id == told.id && index == 0;
                        let found = message.content.to_lowercase().contains(&fact);
                        assert_eq!(found, own, "seed {seed}: {fact} in {} {index}", heard.id);
                    }
                }
            }
        }
    }
}

#[test]
fn fillers_are_many_and_say_no_number_and_no_day() {
    let pairs: BTreeSet<&str> = FILLERS.trim().split("\n\n").collect();
    assert!(pairs.len() >= 60, "{}", pairs.len());
    assert!(pairs.iter().all(|pair| pair.lines().count() == 2));
    assert!(!FILLERS.contains(|c: char| c.is_ascii_digit()));
    for month in super::facts::MONTHS {
        assert!(!FILLERS.contains(month), "{month}");
    }
    for conversation in generate(SEED) {
        let said: BTreeSet<&str> = conversation.turns.iter().map(|turn| turn.content.as_str()).collect();
        assert_eq!(said.len(), conversation.turns.len(), "{} repeats itself", conversation.id);
    }
}

#[test]
fn another_seed_makes_another_suite_and_oblique_probes_ask_for_the_same() {
    assert_ne!(generate(1), generate(2));
    for (direct, oblique) in generate(5).iter().zip(generate_oblique(5)) {
        let last = direct.probe_turn_index;
        assert_eq!(direct.expected_fact, oblique.expected_fact);
        assert_eq!(direct.turns[..last], oblique.turns[..last]);
        assert_ne!(direct.turns[last], oblique.turns[last]);
    }
}

fn entry() -> Value {
    json!({
        "id": "a",
        "turns": [
            {"role": "user", "content": "I am called Zvalmix."},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "What am I called?"},
        ],
        "fact_turn_index": 0,
        "probe_turn_index": 2,
        "expected_fact": "Zvalmix",
        "fact_type": "name",
        "notes": "fields that nobody knows do no harm",
    })
}

#[test]
fn both_forms_of_a_file_are_read() {
    let list = read(&json!([entry()]).to_string()).unwrap();
    let object = read(&json!({"source": "x", "conversations": [entry()]}).to_string()).unwrap();
    assert_eq!(list, object);
    assert_eq!((list[0].turns[1].role, list[0].fact_type.as_str()), (Role::Assistant, "name"));
    let mut with_system = entry();
    with_system["turns"].as_array_mut().unwrap().insert(0, json!({"role": "system", "content": "Be brief."}));
    (with_system["fact_turn_index"], with_system["probe_turn_index"]) = (json!(1), json!(3));
    assert_eq!(read(&json!([with_system]).to_string()).unwrap()[0].turns.len(), 4);
}

#[test]
fn what_cannot_be_played_is_refused_by_name() {
    let cases: [(&str, Value, &str); 9] = [
        ("/probe_turn_index", json!(1), "assistant's turn"),
        ("/probe_turn_index", json!(9), "`turns` has 3"),
        ("/probe_turn_index", json!(0), "must come after the fact"),
        ("/fact_turn_index", json!(2), "must come after the fact"),
        ("/expected_fact", json!(" "), "`expected_fact` is empty"),
        ("/turns/1/role", json!("user"), "user and assistant alternate"),
        ("/turns/1/role", json!("robot"), "unknown variant"),
        ("/turns/1/role", json!("system"), "instructions come before"),
        ("/id", json!(""), "`id` is empty"),
    ];
    for (place, value, want) in cases {
        let mut bad = entry();
        *bad.pointer_mut(place).unwrap() = value.clone();
        let why = read(&json!([bad]).to_string()).unwrap_err();
        assert!(why.contains(want) && why.starts_with("conversation 0"), "{place} = {value}: {why}");
    }
    assert!(read(&json!([entry(), entry()]).to_string()).unwrap_err().contains("conversation 1 (a): another one"));
    for (text, want) in [("{", "no JSON"), ("{}", "no `conversations`"), ("[]", "no conversations"), ("3", "expected")]
    {
        assert!(read(text).unwrap_err().contains(want), "{text}");
    }
    let mut more = entry();
    more["turns"].as_array_mut().unwrap().push(json!({"role": "assistant", "content": "Zvalmix."}));
    assert!(read(&json!([more]).to_string()).unwrap_err().contains("must be the last"));
}
