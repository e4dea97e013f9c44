//! What is read and yet deserves a word.

use super::super::keys;
use super::{CONNECTIONS, loaded, try_load, whole};

fn warnings(text: &str) -> Vec<(usize, String, String)> {
    let told = loaded(text).warnings;
    told.into_iter().map(|w| (w.place.line, w.key, w.message)).collect()
}

#[test]
fn a_plain_file_gives_no_warning() {
    assert_eq!(warnings(""), []);
}

#[test]
fn a_key_whose_feature_is_to_come_is_named_where_it_stands() {
    // The table shrinks as features arrive; each of its rows is tried as long as it is there.
    for (rule, what) in keys::NOT_YET.iter().filter(|(rule, _)| !rule.contains("dialect")) {
        let (pattern, text) = example(rule);
        let told = warnings(&text);
        assert!(told.iter().any(|(_, key, said)| key == &pattern && said == what), "{rule}\n{text}\n{told:?}");
    }
}

/// A file with the key of a rule, and the key as it is told.
fn example(rule: &str) -> (String, String) {
    let (pattern, value) = match rule.split_once(' ') {
        None => (rule, None),
        Some((key, rest)) if rest.starts_with("!= ") => (key, Some("\"x.db\"".to_owned())),
        Some((key, rest)) => {
            let word = rest.trim_start_matches("= ");
            (key, Some(if word == "true" { word.to_owned() } else { format!("{word:?}") }))
        }
    };
    let (table, name) = pattern.rsplit_once('.').expect("a key");
    let value = value.unwrap_or_else(|| {
        match name {
            "tls" => "{ cert = \"c\", key = \"k\" }",
            "warm" | "rpm" | "tpm" | "in_flight" => "1",
            "affinity" | "queue" | "keep" => "\"1h\"",
            "shed_at" => "0.9",
            "limits" => "{ rpm = 1 }",
            "credentials" => "{ a = { env = \"K\" } }",
            "only" | "domains" => "[\"region:us\"]",
            "prices" => "{}",
            "webhook" => "{ env = \"SEGUE_WEBHOOK\" }",
            other => panic!("no example for {other}"),
        }
        .to_owned()
    });
    let key = pattern.replacen('*', "x", 1).replace("[]", "[0]");
    let line = format!("{name} = {value}");
    let row = "connection = \"a\", model = \"m\"";
    let text = match table {
        "connections.*" => format!("[connections.x]\ndialect = \"mock\"\n{line}\n{CONNECTIONS}"),
        "levels.*" => format!("[levels.x]\nchain = [{{ {row} }}]\n{line}"),
        "levels.*.chain[]" => format!("[levels.x]\nchain = [{{ {row}, {line} }}]"),
        "tenants.*" => format!("[tenants.x]\nkeys = []\n{line}"),
        "tenants.*.keys[]" => format!("[tenants.x]\nkeys = [{{ sha256 = \"{}\", {line} }}]", "1".repeat(64)),
        "store" if name == "backend" => format!("[store]\n{line}\nurl = {{ env = \"REDIS_URL\" }}"),
        table => format!("[{table}]\n{line}"),
    };
    (key, text)
}

#[test]
fn a_target_is_asked_once_a_turn() {
    let text = "[levels.n]\nchain = [\n{ connection = \"a\", model = \"m\" },\n{ connection = \"b\", model = \"m\" },\n\
                { connection = \"a\", model = \"m\" },\n{ connection = \"b\", model = \"m\" },\n{ connection = \"a\", model = \"other\" }]";
    let loaded = loaded(text);
    let chain: Vec<_> =
        loaded.config.levels[0].chain.iter().map(|e| format!("{}/{}", e.target.connection, e.target.model)).collect();
    assert_eq!(chain, ["a/m", "b/m", "a/other"]);
    let told: Vec<_> = loaded.warnings.iter().map(|w| (w.place.line, w.key.as_str())).collect();
    assert_eq!(told, [(5, "levels.n.chain[2]"), (6, "levels.n.chain[3]")]);
    assert!(loaded.warnings[0].message.contains("a/m stands in the chain already"));
}

#[test]
fn five_rows_with_four_targets_are_a_chain() {
    let rows = ["1", "2", "3", "4", "1"].map(|m| format!("{{ connection = \"a\", model = \"{m}\" }}")).join(", ");
    assert_eq!(loaded(&format!("[levels.n]\nchain = [{rows}]")).config.levels[0].chain.len(), 4);
}

#[test]
fn a_target_whose_dialect_is_to_come_is_left_out_and_a_chain_of_nothing_else_is_refused() {
    let Some((_, dialect)) = keys::NOT_YET.iter().find_map(|(rule, _)| rule.split_once("dialect = ")) else { return };
    let connections =
        format!("{CONNECTIONS}[connections.z]\ndialect = \"{dialect}\"\nbase_url = \"http://127.0.0.1:3\"\n");
    let text = format!(
        "[levels.n]\nchain = [{{ connection = \"z\", model = \"m\" }}, {{ connection = \"a\", model = \"m\" }}]\n{connections}"
    );
    let good = loaded(&text);
    let chain: Vec<_> = good.config.levels[0].chain.iter().map(|e| e.target.connection.to_string()).collect();
    assert_eq!(chain, ["a"]);
    let told: Vec<_> = good.warnings.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(told, ["levels.n.chain[0]", "connections.z.dialect"]);

    let text = format!("[levels.n]\nchain = [{{ connection = \"z\", model = \"m\" }}]\n{connections}");
    let problems = try_load(&text).expect_err("nothing is left");
    assert_eq!((problems.len(), problems[0].key.as_str()), (1, "levels.n.chain"));
    assert!(problems[0].message.contains("no target is left"));
}

#[test]
fn settings_without_effect_are_named() {
    for (text, key, message) in [
        (
            "[levels.n]\nchain = [{ connection = \"a\", model = \"m\" }]\nqueue = \"5s\"",
            "levels.n.queue",
            "without `shed_at`",
        ),
        (
            "[levels.n]\nchain = [{ connection = \"a\", model = \"m\", timeouts = { turn = \"5s\" } }]",
            "levels.n.chain[0].timeouts.turn",
            "clock of the whole turn",
        ),
        ("[store]\nurl = { env = \"REDIS_URL\" }", "store.url", "not used by the store in memory"),
        ("[tenants.t]\nkeys = []", "tenants.t.keys", "cannot use the gateway"),
        ("[server]\nallow_anonymous = true\n[tenants.t]\nkeys = []", "server.allow_anonymous", "has no effect"),
        (
            "[connections.a]\ndialect = \"chat\"\nbase_url = \"http://example.com\"\napi_key = { env = \"K\" }\n\
             [levels.n]\nchain = [{ connection = \"a\", model = \"m\" }]",
            "connections.a.base_url",
            "unencrypted",
        ),
        (
            "[connections.a]\ndialect = \"chat\"\n[levels.n]\nchain = [{ connection = \"a\", model = \"m\" }]\n\
             [tenants.t]\nkeys = []\ncredentials = { a = { env = \"K\" } }",
            "connections.a",
            "only tenants that bring their own",
        ),
    ] {
        let told = warnings(text);
        assert!(told.iter().any(|(_, k, m)| k == key && m.contains(message)), "{}\n{told:?}", whole(text));
    }
}
