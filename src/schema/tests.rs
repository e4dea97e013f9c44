//! The evaluator by hand, against another one, and against what would stop one without a budget.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]

use super::{Budget, Verdict, check};
use proptest::prelude::*;
use serde_json::{Value, json};

fn verdict(schema: &Value, value: &Value) -> Verdict {
    check(schema, value, Budget::default())
}

/// A schema, and two values: one that meets it and one that does not.
fn rows() -> Vec<(Value, Value, Value)> {
    vec![
        (json!({"type": "integer"}), json!(1.0), json!(1.5)),
        (json!({"type": ["string", "null"]}), json!(null), json!(1)),
        (json!({"enum": [1, {"a": [1]}]}), json!({"a": [1.0]}), json!({"a": [2]})),
        (json!({"const": "x"}), json!("x"), json!("y")),
        (json!({"exclusiveMinimum": 1, "maximum": 3}), json!(3), json!(1)),
        (json!({"minimum": 1, "exclusiveMinimum": true}), json!(2), json!(1)),
        (json!({"multipleOf": 0.1}), json!(0.3), json!(0.35)),
        (json!({"minLength": 2, "maxLength": 3}), json!("öö"), json!("ö")),
        (json!({"pattern": "^\\d{3}\\/\\w$"}), json!("123/x"), json!("١٢٣/x")),
        (json!({"minItems": 1, "uniqueItems": true}), json!([1, "1"]), json!([1, 1.0])),
        (json!({"required": ["a"], "maxProperties": 1}), json!({"a": 1}), json!({"b": 1})),
        (json!({"dependentRequired": {"a": ["b"]}}), json!({"b": 1}), json!({"a": 1})),
        (
            json!({"properties": {"a": {"type": "string"}}, "additionalProperties": false}),
            json!({"a": ""}),
            json!({"a": "", "b": 1}),
        ),
        (
            json!({"patternProperties": {"^x": {"type": "null"}}, "additionalProperties": {"type": "string"}}),
            json!({"x1": null, "y": ""}),
            json!({"x1": null, "y": 1}),
        ),
        (json!({"propertyNames": {"maxLength": 1}}), json!({"a": 1}), json!({"ab": 1})),
        (json!({"prefixItems": [{"type": "string"}], "items": {"type": "null"}}), json!(["", null]), json!(["", 1])),
        (json!({"items": [{"type": "string"}], "additionalItems": false}), json!([""]), json!(["", 1])),
        (json!({"contains": {"type": "null"}, "maxContains": 1}), json!([1, null]), json!([null, null])),
        (json!({"anyOf": [{"type": "null"}, {"minimum": 5}]}), json!(5), json!(4)),
        (json!({"oneOf": [{"type": "integer"}, {"minimum": 5}]}), json!(4), json!(5)),
        (json!({"not": {"type": "null"}}), json!(1), json!(null)),
        (
            json!({"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}),
            json!({"c": 1}),
            json!({"a": 1, "c": 1}),
        ),
        (
            json!({"$defs": {"t~u": {"properties": {"next": {"$ref": "#/$defs/t~0u"}, "n": {"type": "integer"}}}}, "$ref": "#/$defs/t~0u"}),
            json!({"next": {"next": {"n": 1}}}),
            json!({"next": {"next": {"n": "1"}}}),
        ),
        (json!({"$defs": {"a b": {"type": "null"}}, "$ref": "#/$defs/a%20b"}), json!(null), json!(1)),
        (json!({"$defs": {"x": {"$anchor": "n", "type": "null"}}, "$ref": "#n"}), json!(null), json!(1)),
        (
            json!({"$defs": {"x": {"$id": "urn:x", "$defs": {"y": {"type": "null"}}, "$ref": "#/$defs/y"}}, "$ref": "urn:x"}),
            json!(null),
            json!(1),
        ),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}}, "items": {"$ref": "#/definitions/a", "type": "null"}, "minItems": 1}),
            json!([1]),
            json!([]),
        ),
        (json!(true), json!(1), Value::Null),
    ]
}

#[test]
fn every_keyword_takes_what_fits_and_nothing_else() {
    for (schema, fits, differs) in rows() {
        assert_eq!(verdict(&schema, &fits), Verdict::Fits, "{schema} {fits}");
        if schema != json!(true) {
            assert_eq!(verdict(&schema, &differs), Verdict::Differs, "{schema} {differs}");
        }
    }
    assert_eq!(verdict(&json!(false), &json!(1)), Verdict::Differs);
}

#[test]
fn what_cannot_be_decided_blames_nobody_and_what_can_is_decided_beside_it() {
    let undecided = |schema: Value, value: Value| match verdict(&schema, &value) {
        Verdict::Undecided(why) => why.to_owned(),
        other => panic!("{schema}: {other:?}"),
    };
    assert!(undecided(json!({"$ref": "https://example.com/schema"}), json!(1)).contains("points to nothing"));
    assert!(undecided(json!({"pattern": "(?=a)b"}), json!("b")).contains("linear time"));
    assert!(undecided(json!({"not": {"$dynamicRef": "#x"}}), json!("b")).contains("not followed"));
    assert_eq!(verdict(&json!({"$dynamicRef": "#x", "type": "null"}), &json!("b")), Verdict::Differs);
    assert_eq!(verdict(&json!({"anyOf": [{"$dynamicRef": "#x"}, {"type": "string"}]}), &json!("b")), Verdict::Fits);
    undecided(json!({"type": 7}), json!(1));
    undecided(json!({"allOf": {}}), json!(1));
    undecided(json!([]), json!(1));
}

/// Schemas that cost others their stack, or for ever.
fn hostile() -> Vec<(&'static str, Value, Value)> {
    let chain = |steps: usize, step: &dyn Fn(String) -> Value| {
        let mut defs: serde_json::Map<_, _> =
            (0..steps).map(|n| (format!("a{n}"), step(format!("#/$defs/a{}", n + 1)))).collect();
        defs.insert(format!("a{steps}"), json!({}));
        json!({"$defs": defs, "$ref": "#/$defs/a0"})
    };
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!({"x": deep});
    }
    let wide: Vec<Value> = (0..2000).map(|n| json!({"n": n})).collect();
    vec![
        ("a long chain", chain(20_000, &|next| json!({"allOf": [{"$ref": next}, {"type": "object"}]})), json!({})),
        ("a bare chain", chain(20_000, &|next| json!({"$ref": next})), json!({})),
        ("doubling", chain(60, &|next| json!({"allOf": [{"$ref": next}, {"$ref": next}]})), json!({})),
        (
            "doubling with the value",
            json!({"$defs": {"a": {"allOf": [{"properties": {"x": {"$ref": "#/$defs/a"}}}, {"properties": {"x": {"$ref": "#/$defs/a"}}}]}}, "$ref": "#/$defs/a"}),
            deep,
        ),
        ("a circle", json!({"$ref": "#"}), json!(1)),
        (
            "a wide enumeration",
            json!({"items": {"enum": wide.clone()}}),
            Value::Array(wide.iter().rev().cloned().collect()),
        ),
        ("many names", json!({"$ref": "#nowhere", "x": (0..1_000_000).map(Value::from).collect::<Vec<_>>()}), json!(1)),
        ("a large expression", json!({"pattern": "((a{1,50}){1,50}){1,50}$"}), json!("a".repeat(100_000))),
        (
            "many expressions",
            json!({"allOf": (0..1000).map(|n| json!({"pattern": format!("[\\p{{L}}{n}]{{0,40}}")})).collect::<Vec<_>>()}),
            json!("a"),
        ),
    ]
}

#[test]
fn a_hostile_schema_costs_its_budget_and_no_stack() {
    for (what, schema, value) in hostile() {
        let played = std::thread::Builder::new().stack_size(2 << 20).spawn(move || verdict(&schema, &value)).unwrap();
        let verdict = played.join().unwrap();
        assert!(matches!(verdict, Verdict::Undecided(_)), "{what}: {verdict:?}");
    }
    let back_and_forth = json!({"pattern": "^(a|a)*(a|a)*(a|a)*$"});
    assert_eq!(verdict(&back_and_forth, &json!(format!("{}b", "a".repeat(100_000)))), Verdict::Differs);
}

// === against another evaluator ===

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        (-4_i64..5).prop_map(|n| json!(n as f64 / 2.0)),
        "[ab0]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[ab]{1,2}", inner), 0..4).prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

fn schema() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec!["null", "boolean", "number", "integer", "string", "array", "object"]);
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        kind.prop_map(|kind| json!({"type": kind})),
        value().prop_map(|v| json!({"const": v})),
        prop::collection::vec(value(), 1..4).prop_map(|v| json!({"enum": v})),
        (-3_i64..4, -3_i64..4).prop_map(|(a, b)| json!({"minimum": a, "exclusiveMaximum": b})),
        (1_u64..4).prop_map(|n| json!({"multipleOf": n as f64 / 2.0})),
        (0_u64..4, 0_u64..4).prop_map(|(a, b)| json!({"minLength": a, "maxItems": b, "minProperties": a})),
        prop::sample::select(vec!["^a", "b$", "^[a-z]+$", "\\d", "^\\w{1,2}$"]).prop_map(|p| json!({"pattern": p})),
        Just(json!({"uniqueItems": true})),
        prop::collection::vec("[ab]{1,2}", 0..3).prop_map(|names| {
            let names: std::collections::BTreeSet<_> = names.into_iter().collect();
            json!({"required": names})
        }),
        Just(json!({"$ref": "#/$defs/d"})),
    ];
    leaf.prop_recursive(3, 24, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4);
        let named = prop::collection::vec(("[ab]{1,2}", inner.clone()), 0..3)
            .prop_map(|m| Value::Object(m.into_iter().collect()));
        let part = prop_oneof![
            (prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]), list.prop_map(Value::from)),
            (
                prop::sample::select(vec![
                    "not",
                    "items",
                    "contains",
                    "additionalProperties",
                    "propertyNames",
                    "if",
                    "then",
                    "else",
                ]),
                inner,
            ),
            (prop::sample::select(vec!["properties", "patternProperties", "dependentSchemas"]), named),
        ];
        prop::collection::vec(part, 1..4)
            .prop_map(|parts| Value::Object(parts.into_iter().map(|(name, v)| (name.to_owned(), v)).collect()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn another_evaluator_says_the_same(root in schema(), definition in schema(), value in value()) {
        let root = json!({"$defs": {"d": definition}, "allOf": [root]});
        let other = jsonschema::validator_for(&root);
        prop_assume!(other.is_ok());
        match verdict(&root, &value) {
            // A definition that refers to itself without an end is met so.
            Verdict::Undecided(why) => prop_assert!(why.contains("nested") || why.contains("steps"), "{}", why),
            said => prop_assert_eq!(said == Verdict::Fits, other.unwrap().is_valid(&value), "{}\n{}", root, value),
        }
    }
}
