//! Every kind of mistake, with its exact place, its key and its remedy. `¦` marks the place in the text.

use super::super::{Place, load};
use super::{Fake, lines, try_load, whole};

struct Bad {
    text: &'static str,
    key: &'static str,
    message: &'static str,
    remedy: &'static str,
}

macro_rules! bad {
    ($($text:literal => $key:literal, $message:literal, $remedy:literal;)*) => {
        &[$(Bad { text: $text, key: $key, message: $message, remedy: $remedy }),*]
    };
}

/// Text, key, part of the message, part of the remedy.
const TABLE: &[Bad] = bad! {
    // Keys.
    "[server]\n  ¦lisen = \"127.0.0.1:1\"" => "server.lisen", "unknown key", "did you mean `listen`?";
    "[timeouts]\n¦frist_token = \"8s\"" => "timeouts.frist_token", "unknown key", "did you mean `first_token`?";
    "[timeouts]\n¦first-token = \"8s\"" => "timeouts.first-token", "unknown key", "did you mean `first_token`?";
    "[¦sever]\nx = 1" => "sever", "unknown key", "did you mean `server`?";
    "[server]\n¦first_token = \"8s\"" => "server.first_token", "unknown key", "`first_token` is a key of `timeouts`";
    "[server]\n¦store = 1" => "server.store", "unknown key", "write `[store]`";
    "[server]\n¦wonderful = 1" => "server.wonderful", "unknown key", "known here: `listen`";
    "[levels.normal]\nchain = [{ connection = \"a\", ¦modle = \"x\", model = \"y\" }]"
        => "levels.normal.chain[0].modle", "unknown key", "did you mean `model`?";
    "[levels.normal.timeouts]\n¦stal = \"5s\"\n[levels.normal]\nchain = [{ connection = \"a\", model = \"x\" }]"
        => "levels.normal.timeouts.stal", "unknown key", "did you mean `stall`?";
    "[connections.a]\n¦dialekt = \"chat\"\nbase_url = \"http://127.0.0.1:1\"\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.dialekt", "unknown key", "did you mean `dialect`?";
    "[connections.a]\ndialect = \"chat\"\n¦api_kye = { env = \"K\" }\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.api_kye", "unknown key", "did you mean `api_key`?";
    "[levels.normal]\n¦chian = [{ connection = \"a\", model = \"x\" }]" => "levels.normal.chian", "unknown key", "did you mean `chain`?";
    "[levels.normal]\nchain = [{ connection = \"a\", ¦modle = \"x\" }]" => "levels.normal.chain[0].modle", "unknown key", "did you mean `model`?";
    // TOML itself.
    "[server¦\nlisten = 1" => "", "no TOML", "";
    "[server]\nkeep_alive = \"1s\"\n¦keep_alive = \"2s\"" => "", "no TOML", "";
    "[server]\nlisten = ¦nonsense" => "", "no TOML", "";
    // Durations.
    "[timeouts]\nstall = ¦5" => "timeouts.stall", "must be a duration with its unit, not an integer", "`stall = \"5s\"`";
    "[timeouts]\nstall = ¦1500" => "timeouts.stall", "not an integer", "`stall = \"1500ms\"`";
    "[timeouts]\nstall = ¦\"5\"" => "timeouts.stall", "has no unit", "`stall = \"5s\"`";
    "[timeouts]\nstall = ¦\"5sec\"" => "timeouts.stall", "unknown unit `sec`", "`stall = \"5s\"`; units are ms, s, m, h and d";
    "[timeouts]\nturn = ¦\"10 minutes\"" => "timeouts.turn", "`10 minutes` is no duration", "units are";
    "[timeouts]\nstall = ¦\"-5s\"" => "timeouts.stall", "is no duration", "`stall = ";
    "[timeouts]\nstall = ¦\"0s\"" => "timeouts.stall", "must not be zero", "`stall = \"5s\"`";
    "[timeouts]\nstall = ¦\"off\"" => "timeouts.stall", "is no duration", "`stall = ";
    "[timeouts]\nturn = ¦\"99999d\"" => "timeouts.turn", "longer than 3650 days", "`turn = ";
    "[timeouts]\nturn = ¦true" => "timeouts.turn", "not a boolean", "`turn = \"5s\"`";
    "[timeouts]\npace = ¦\"15 words/s over 3s\"" => "timeouts.pace", "not in chars/s", "\"15 chars/s over 3s\"";
    "[timeouts]\n# größer: ä\nsuspect = ¦\"ab\" # ö" => "timeouts.suspect", "is no duration", "`suspect = ";
    // Sizes, numbers, shares.
    "[server]\nmax_body = ¦8" => "server.max_body", "must be a size with its unit, not an integer", "`max_body = \"8MiB\"`";
    "[server]\nmax_body = ¦\"8M\"" => "server.max_body", "unknown unit `M`", "`max_body = \"8MiB\"`";
    "[server]\nmax_body = ¦\"0MiB\"" => "server.max_body", "must not be zero", "\"8MiB\"";
    "[server]\nmax_body = ¦\"2GiB\"" => "server.max_body", "larger than all buffers", "raise `buffer`";
    "[server]\nmax_turns = ¦0" => "server.max_turns", "must be between 1 and", "`max_turns = 20000`";
    "[limits]\nrpm = ¦-1" => "limits.rpm", "must be at least 1, not -1", "`rpm = 600`";
    "[limits]\nrpm = ¦1.5" => "limits.rpm", "must be a whole number, not a float", "`rpm = 600`";
    "[limits]\nrpm = ¦99999999999999999999" => "limits.rpm", "must be at least 1", "`rpm = 600`";
    "[seam]\nwindow = ¦3" => "seam.window", "must be between 40 and 4096, not 3", "`window = 240`";
    "[levels.normal]\nchain = [{ connection = \"a\", model = \"x\" }]\nbudget = ¦1.5"
        => "levels.normal.budget", "must be a share from 0 up to 1, not 1.5", "`budget = 0.1`";
    "[levels.normal]\nchain = [{ connection = \"a\", model = \"x\" }]\nshed_at = ¦0"
        => "levels.normal.shed_at", "must be a share above 0 up to 1", "`shed_at = 0.1`";
    "[levels.normal]\nchain = [{ connection = \"a\", model = \"x\" }]\nbudget = ¦nan"
        => "levels.normal.budget", "finite", "`budget = 0.1`";
    // Addresses and openness.
    "[server]\nlisten = ¦\":8080\"" => "server.listen", "no address with a port", "\"127.0.0.1:8080\"";
    "[server]\nlisten = ¦\"0.0.0.0:8080\"" => "server.listen", "could spend your credit", "`server.allow_anonymous = true`";
    "[admin]\nlisten = ¦\"0.0.0.0:9090\"" => "admin.listen", "open to everyone", "add `token = { env = \"SEGUE_ADMIN_TOKEN\" }`";
    "[server]\nlisten = \"127.0.0.1:80\"\n[admin]\nlisten = ¦\"127.0.0.1:80\"" => "admin.listen", "both", "its own port";
    "[server]\n¦tls = { cert = \"c.pem\" }" => "server.tls.key", "is missing", "add `key = ";
    "[server]\ndomains = [\"region:eu\", ¦\"eu\"]" => "server.domains[1]", "is no domain", "\"region:us-east\"";
    "[server]\ndomains = ¦\"region:eu\"" => "server.domains", "must be a list", "`domains = [";
    "server = ¦3" => "server", "must be a table, not an integer", "`server = { … }`";
    // Secrets.
    "[admin]\ntoken = ¦\"hush\"" => "admin.token", "must not stand in the file", "`token = { env = \"NAME\" } or { file = \"PATH\" }`";
    "[admin]\n¦token = { env = \"UNSET\" }" => "admin.token", "environment variable `UNSET`, which holds the token of the admin interface, is not set", "set it";
    "[admin]\n¦token = { file = \"/nowhere\" }" => "admin.token", "file `/nowhere`, which holds the token of the admin interface, cannot be read: there is no such file", "path";
    "[admin]\n¦token = { vault = \"x\" }" => "admin.token", "`vault` is no source of a secret", "{ env = \"NAME\" }";
    "[admin]\n¦token = { env = \"A\", file = \"b\" }" => "admin.token", "one source", "{ env = \"NAME\" }";
    "[admin]\n¦token = { env = \"sk-hush\" }" => "admin.token", "must be the name of an environment variable", "{ env = \"NAME\" }";
    "[admin]\n¦token = { env = 3 }" => "admin.token", "`env` must be a string", "{ env = \"NAME\" }";
    "[connections.a]\ndialect = \"chat\"\n¦api_key = { env = \"UNSET\" }\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.api_key", "`UNSET`, which holds the API key of the connection `a`", "set it";
    // Connections.
    "[connections.¦a]\ndialect = \"chat\"\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.api_key", "is missing", "`api_key = { env = \"A_API_KEY\" }`";
    "[connections.¦a]\nbase_url = \"http://127.0.0.1:1\"\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.dialect", "is missing", "`dialect = \"chat\"`";
    "[connections.a]\ndialect = ¦\"openai\"\nbase_url = \"http://127.0.0.1:1\"\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.dialect", "must be `chat`, `responses`", "openai speaks `chat`";
    "[connections.a]\ndialect = ¦\"antropic\"\nbase_url = \"http://127.0.0.1:1\"\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.dialect", "not \"antropic\"", "did you mean `anthropic`?";
    "[connections.a]\ndialect = \"chat\"\nbase_url = ¦\"127.0.0.1:1\"\napi_key = { env = \"K\" }\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.base_url", "no URL that begins with https://", "\"https://api.openai.com/v1\"";
    "[connections.a]\ndialect = \"chat\"\nbase_url = ¦\"http://u:hush@127.0.0.1:1\"\napi_key = { env = \"K\" }\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.base_url", "must not hold a user", "`api_key = ";
    "[connections.a]\ndialect = \"chat\"\nbase_url = ¦\"http://127.0.0.1:1/v1/chat/completions\"\napi_key = { env = \"K\" }\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.base_url", "one route of the API", "cut it";
    "[connections.a]\ndialect = \"chat\"\nbase_url = ¦\"http://127.0.0.1:1?x=1\"\napi_key = { env = \"K\" }\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.base_url", "must end with the path", "`query = ";
    "[connections.a]\ndialect = \"mock\"\nheaders = { ¦host = \"x\" }\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.headers.host", "set by Segue itself", "leave it out";
    "[connections.a]\ndialect = \"mock\"\nheaders = { Authorization = ¦\"Bearer hush\" }\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.headers.Authorization", "must not stand in the file", "{ env = \"NAME\" }";
    "[connections.a]\ndialect = \"mock\"\nversion = ¦\"2023-06-01\"\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.version", "has no protocol version", "api-version";
    "[connections.a]\ndialect = \"mock\"\nhttp2 = ¦\"on\"\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.http2", "must be `auto`, `prior_knowledge` or `off`, not \"on\"", "";
    "[connections.a]\ndialect = \"mock\"\nbreaker = { error_rate = ¦0 }\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.breaker.error_rate", "must be a share above 0 up to 1", "`error_rate = 0.1`";
    "[connections.a]\ndialect = \"mock\"\nbreaker = { consecutive = ¦0 }\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.breaker.consecutive", "must be between 1", "`consecutive = 5`";
    "[connections.a]\ndialect = \"mock\"\nbreaker = { cooldown = \"5s\", max_cooldown = ¦\"1s\" }\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.breaker.max_cooldown", "shorter than `cooldown`", "raise it";
    "[connections.a]\ndialect = \"mock\"\nbreaker = { ¦latency = {} }\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.breaker.latency", "sets no bound", "over_baseline";
    "[connections.a]\ndialect = \"mock\"\nbreaker = { latency = { over_baseline = ¦1 } }\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "connections.a.breaker.latency.over_baseline", "must be above 1", "2.0";
    "[connections.¦\"a/b\"]\ndialect = \"mock\"\n[levels.x]\nchain = [{ connection = \"a/b\", model = \"m\" }]"
        => "connections.\"a/b\"", "no good name for a connection", "[connections.connection-1]";
    "connections.a = { dialect = \"mock\" }\n[¦levels]" => "levels", "there is none", "add `[levels.normal]`";
    // Levels.
    "[levels.normal]\nchain = [{ connection = ¦\"aa\", model = \"x\" }]" => "levels.normal.chain[0].connection", "there is no connection `aa`", "did you mean `a`?";
    "[levels.normal]\nchain = [{ connection = ¦\"openai\", model = \"x\" }]" => "levels.normal.chain[0].connection", "there is no connection `openai`", "`[connections.openai]`";
    "[levels.normal]\nchain = ¦[]" => "levels.normal.chain", "is empty", "`chain = [{ connection";
    "[levels.¦normal]\nretries = 1" => "levels.normal.chain", "is missing", "add `chain = [";
    "[levels.normal]\nchain = [¦{ connection = \"a\" }]" => "levels.normal.chain[0].model", "is missing", "add `model = ";
    "[levels.normal]\nchain = [¦\"a/x\"]" => "levels.normal.chain[0]", "must be a table, not a string", "{ … }";
    "[levels.normal]\nchain = ¦[{ connection = \"a\", model = \"1\" }, { connection = \"a\", model = \"2\" }, { connection = \"a\", model = \"3\" }, { connection = \"b\", model = \"4\" }, { connection = \"b\", model = \"5\" }]"
        => "levels.normal.chain", "has 5 targets; at most 4 are allowed", "hardly any independence";
    "[levels.normal]\nchain = [{ connection = \"a\", model = \"x\", quality = ¦0 }]" => "levels.normal.chain[0].quality", "between 1 and", "`quality = 1`";
    "[levels.normal]\nchain = [{ connection = \"a\", model = \"x\", continuation = ¦\"prefil\" }]" => "levels.normal.chain[0].continuation", "must be `auto`", "did you mean `prefill`?";
    "[levels.normal]\nchain = [{ connection = \"a\", model = \"x\", context_window = 100, max_output = ¦200 }]" => "levels.normal.chain[0].max_output", "larger than the `context_window` of 100", "correct one";
    "[levels.normal]\nchain = [{ connection = \"a\", model = \"x\", drops = [¦1] }]" => "levels.normal.chain[0].drops[0]", "must be a string", "`drops = [";
    "[levels.normal]\nchain = [{ connection = \"a\", model = \"x\", quality = 3 }]\nmin_quality = ¦2" => "levels.normal.min_quality", "no target of the chain is of quality 2 or better", "raise it";
    "[levels.normal]\nchain = [{ connection = \"a\", model = \"x\" }]\nretries = ¦99" => "levels.normal.retries", "between 0 and 10", "`retries = 1`";
    "[levels.normal]\nchain = [{ connection = \"a\", model = \"x\" }]\nconversation = ¦\"superseed\"" => "levels.normal.conversation", "must be `reject`", "did you mean `supersede`?";
    "[levels.normal]\nchain = [{ connection = \"a\", model = \"x\" }]\n¦hedge = { budget = 0.1 }" => "levels.normal.hedge.after", "is missing", "add `after = \"p90\"`";
    "[levels.normal]\nchain = [{ connection = \"a\", model = \"x\" }]\nhedge = { after = ¦\"p100\" }" => "levels.normal.hedge.after", "no percentile", "\"p90\" or \"150ms\"";
    "[levels.normal]\nchain = [{ connection = \"a\", model = \"x\" }]\nhedge = { after = \"p90\", min = ¦\"2s\", max = \"1s\" }" => "levels.normal.hedge.min", "later than `max`", "raise `max`";
    "[levels.normal]\nchain = [{ connection = \"a\", model = \"x\" }]\nhedge = { after = ¦\"1s\", max = \"200ms\" }" => "levels.normal.hedge.after", "outside of `min` and `max`", "leave `min` and `max` out";
    "[levels.normal]\nchain = [{ connection = \"a\", model = \"x\" }]\nbackoff = { base = \"9s\", cap = ¦\"1s\" }" => "levels.normal.backoff.cap", "shorter than `base`", "raise it";
    "[levels.¦\"a b\"]\nchain = [{ connection = \"a\", model = \"x\" }]" => "levels.\"a b\"", "no good name for a level", "[levels.level-1]";
    // Tenants.
    "[¦tenants]" => "tenants", "nobody could use the gateway", "sha256";
    "[tenants.¦t]" => "tenants.t.keys", "is missing", "add `keys = ";
    "[tenants.t]\nkeys = [{ sha256 = ¦\"sk-hush\" }]" => "tenants.t.keys[0].sha256", "64 hexadecimal digits", "sha256sum";
    "[tenants.t]\nkeys = [{ sha256 = ¦\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\" }]" => "tenants.t.keys[0].sha256", "of nothing", "sha256sum";
    "[tenants.t]\nkeys = [{ sha256 = \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\", expires = ¦\"2027-01-01\" }]" => "tenants.t.keys[0].expires", "a date without quotes", "`expires = 2027-01-01`";
    "[tenants.t]\nkeys = [{ sha256 = \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\" }]\n[tenants.u]\nkeys = [{ sha256 = ¦\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\" }]" => "tenants.u.keys[0].sha256", "key of the tenant `t` already", "of its own";
    "[tenants.t]\nkeys = []\nlevels = { normal = ¦\"nromal\" }" => "tenants.t.levels.normal", "there is no level `nromal`", "did you mean `normal`?";
    "[server]\ncors = [¦\"example.com\"]" => "server.cors[0]", "has no scheme", "app.example.com";
    "[server]\ncors = [¦\"null\"]" => "server.cors[0]", "every sandboxed page", "app.example.com";
    "[server]\ncors = ¦[\"*\"]" => "server.cors", "every web page", "list the origins";
    "[server]\nhosts = [¦\"http://a\"]" => "server.hosts[0]", "no name of a host", "without scheme";
    "[server]\ndefault_level = ¦\"nrmal\"" => "server.default_level", "there is no level `nrmal`", "did you mean `normal`?";
    "[server]\nmax_connections = ¦0" => "server.max_connections", "must be between 1 and", "max_connections = 10000";
    "[aliases]\n\"gpt*\" = ¦\"nrmal\"" => "aliases.\"gpt*\"", "this gateway has no level `nrmal`", "did you mean `normal`?";
    "[aliases]\nnormal = ¦\"normal\"" => "aliases.normal", "a level of this gateway already", "another name";
    "[aliases]\n\"*****\" = ¦\"normal\"" => "aliases.\"*****\"", "more than 4 `*`", "gpt-4o*";
    "[tenants.t]\nkeys = []\naliases = { gpt = ¦\"nrmal\" }" => "tenants.t.aliases.gpt", "the tenant has no level `nrmal`", "did you mean `normal`?";
    "[tenants.t]\nkeys = []\naliases = { normal = ¦\"normal\" }" => "tenants.t.aliases.normal", "a level of the tenant already", "another name";
    "[tenants.t]\nkeys = []\nonly = ¦[\"regoin:eu\"]" => "tenants.t.only", "no target of the level `normal`", "did you mean `region:eu`?";
    "[tenants.t]\nkeys = []\nlimits = { rpm = ¦0 }" => "tenants.t.limits.rpm", "must be at least 1", "`rpm = 600`";
    "connections.a = { dialect = \"mock\" }\n[tenants.t]\nkeys = []\ncredentials = { ¦c = { env = \"K\" } }\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "tenants.t.credentials.c", "there is no connection `c`", "did you mean `a`?";
    "connections.a = { dialect = \"mock\" }\n[tenants.t]\nkeys = []\ncredentials = { a = ¦\"hush\" }\n[levels.x]\nchain = [{ connection = \"a\", model = \"m\" }]"
        => "tenants.t.credentials.a", "must not stand in the file", "{ env = \"NAME\" }";
    // Store, ledger, alerts.
    "[¦store]\nbackend = \"redis\"" => "store.url", "is missing", "add `url = { env = \"REDIS_URL\" }`";
    "[store]\nbackend = \"redis\"\n¦url = { env = \"SOMETHING\" }" => "store.url", "no URL that begins with redis://", "scheme included";
    "[store]\nbackend = ¦\"mem\"" => "store.backend", "must be `memory` or `redis`", "`backend = \"memory\"`";
    "[ledger]\nprices = { ¦a = { input = 1, output = 1 } }" => "ledger.prices.a", "is no target", "\"openai-prod/gpt-4.1\"";
    "[ledger]\nprices = { ¦\"aa/m\" = { input = 1, output = 1 } }" => "ledger.prices.\"aa/m\"", "there is no connection `aa`", "did you mean `a`?";
    "[ledger]\nprices = { \"a/m\" = { input = ¦-1, output = 1 } }" => "ledger.prices.\"a/m\".input", "must not be negative", "2.0";
    "[alerts]\nwebhook = ¦\"https://hush.example.com\"" => "alerts.webhook", "must not stand in the file", "{ env = \"NAME\" }";
    "[alerts]\n¦webhook = { env = \"SOMETHING\" }" => "alerts.webhook", "no URL that begins with https://", "scheme included";
};

#[test]
fn every_mistake_has_its_place_its_key_and_its_remedy() {
    assert!(TABLE.len() > 90);
    let wrong: Vec<String> = TABLE.iter().filter_map(|bad| judge(bad).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn judge(bad: &Bad) -> Result<(), String> {
    let mark = bad.text.find('¦').expect("a mark");
    let before = &bad.text[..mark];
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    let place = Place { path: "segue.toml".into(), line: before.matches('\n').count() + 1, column };
    let problems = try_load(&bad.text.replace('¦', "")).err().ok_or_else(|| format!("{} is taken", bad.text))?;
    let told = lines(&problems);
    let [problem] = problems.as_slice() else { return Err(format!("{}\ngives {}:\n{told}", bad.text, problems.len())) };
    let fits = problem.place == place
        && problem.key == bad.key
        && problem.message.contains(bad.message)
        && problem.remedy.contains(bad.remedy)
        && !told.contains("hush");
    if fits { Ok(()) } else { Err(format!("{}\nshould be told at {place} and gives\n{told}", bad.text)) }
}

#[test]
fn all_mistakes_are_told_at_once_in_the_order_of_the_file() {
    let text = whole(
        "[server]\nlisen = 1\nkeep_alive = 3\n[timeouts]\nstall = \"x\"\n[limits]\nrpm = 0\n[store]\nbackend = 1\n",
    );
    let problems = load(&text, "c.toml", &Fake::generous()).expect_err("bad");
    let keys: Vec<_> = problems.iter().map(|p| (p.place.line, p.key.as_str())).collect();
    assert_eq!(
        keys,
        [(2, "server.lisen"), (3, "server.keep_alive"), (5, "timeouts.stall"), (7, "limits.rpm"), (9, "store.backend")]
    );
}

#[test]
fn several_syntax_errors_are_told_at_once_and_nothing_else() {
    let problems =
        load("[server]\na = \n[timeouts]\nb = ?\nnonsense = 1\n", "c.toml", &Fake::generous()).expect_err("bad");
    let places: Vec<_> = problems.iter().map(|p| p.place.line).collect();
    assert_eq!(places, [2, 4], "{}", lines(&problems));
    assert!(problems.iter().all(|p| p.message.contains("no TOML")));
}

#[test]
fn a_broken_connection_does_not_make_its_chains_look_broken() {
    let problems = try_load(
        "[connections.a]\ndialect = \"openai\"\n[levels.n]\nchain = [{ connection = \"a\", model = \"m\" }]\n\
         [tenants.t]\nkeys = []\nlevels = { n = \"n\" }",
    )
    .expect_err("bad");
    let keys: Vec<_> = problems.iter().map(|p| p.key.as_str()).collect();
    assert_eq!(keys, ["connections.a.api_key", "connections.a.dialect"], "{}", lines(&problems));
}

#[test]
fn a_misspelt_table_is_told_once() {
    let text = "[connections.a]\ndialect = \"mock\"\n[level.x]\nchain = [{ connection = \"a\", model = \"m\" }]\n";
    let problems = load(text, "c.toml", &Fake::generous()).expect_err("bad");
    let keys: Vec<_> = problems.iter().map(|p| (p.key.as_str(), p.remedy.as_str())).collect();
    assert_eq!(keys, [("level", "did you mean `levels`?")]);
}

#[test]
fn an_empty_file_is_told_what_it_needs() {
    let problems = load("", "segue.toml", &Fake::generous()).expect_err("bad");
    let keys: Vec<_> = problems.iter().map(|p| p.key.as_str()).collect();
    assert_eq!(keys, ["connections", "levels"]);
    assert!(problems.iter().all(|p| p.place.line == 1 && p.place.column == 1));
}

#[test]
fn columns_count_characters_and_lines_end_as_they_like() {
    let text = whole("\u{feff}[server]\r\nkeep_alive = \"ä\"\r\n");
    let problems = load(&text, "c.toml", &Fake::generous()).expect_err("bad");
    assert_eq!((problems[0].place.line, problems[0].place.column), (2, 14), "{}", lines(&problems));
}
