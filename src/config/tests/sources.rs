//! Where a configuration comes from, and what comes of no configuration at all.

use super::super::lookup::open;
use super::super::{Location, check, from_environment, locate, zero};
use super::{Fake, lines};

fn file(path: &str) -> Location {
    Location::File(path.to_owned())
}

#[test]
fn the_first_file_that_is_there_is_taken() {
    let home = || Fake::default().env("HOME", "/home/u");
    let xdg = || home().env("XDG_CONFIG_HOME", "/etc/xdg/");
    let cases = [
        (Some("x.toml"), xdg().file("segue.toml", ""), file("x.toml")),
        (None, xdg().file("segue.toml", "").file("/etc/xdg/segue/segue.toml", ""), file("segue.toml")),
        (None, xdg().file("/etc/xdg/segue/segue.toml", ""), file("/etc/xdg/segue/segue.toml")),
        (None, xdg().file("/home/u/.config/segue/segue.toml", ""), Location::Environment),
        (None, home().file("/home/u/.config/segue/segue.toml", ""), file("/home/u/.config/segue/segue.toml")),
        // A relative directory counts as not set, as the XDG specification says.
        (
            None,
            home().env("XDG_CONFIG_HOME", "cfg").file("/home/u/.config/segue/segue.toml", ""),
            file("/home/u/.config/segue/segue.toml"),
        ),
        (None, Fake::default().file("/etc/segue/segue.toml", ""), file("/etc/segue/segue.toml")),
        (None, home().env("SEGUE_CONFIG", "y.toml").file("segue.toml", ""), file("y.toml")),
        (Some("x.toml"), home().env("SEGUE_CONFIG", "y.toml"), file("x.toml")),
        (None, home().env("SEGUE_CONFIG", " ").file("segue.toml", ""), file("segue.toml")),
        (None, Fake::default(), Location::Environment),
    ];
    for (given, places, expected) in cases {
        assert_eq!(locate(given, &places), expected, "{given:?}");
    }
}

#[test]
fn a_given_file_that_is_missing_is_an_error_and_so_is_nothing_at_all() {
    let problems = open(Some("x.toml"), &Fake::generous()).expect_err("missing");
    assert!(
        problems[0].to_string().starts_with("x.toml:1:1: cannot be read: there is no such file"),
        "{}",
        problems[0]
    );

    let problems = open(None, &Fake::default()).expect_err("nothing");
    assert!(problems[0].remedy.contains("OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY"), "{}", problems[0]);

    let places = Fake::generous().file("segue.toml", &super::whole(""));
    assert_eq!(open(None, &places).expect("good").config.levels.len(), 1);
}

#[test]
fn without_a_file_clients_and_operators_are_known_by_what_the_environment_names() {
    let env = || Fake::default().env("OLLAMA_HOST", "localhost").env("SEGUE_KEYS_FILE", "keys");
    let env = |keys| env().env("SEGUE_ADMIN_TOKEN", "t").file("keys", keys);
    let config = open(None, &env("acme hush\n")).expect("good").config;
    assert_eq!(config.tenants.expect("tenants")[0].name.as_ref(), "acme");
    assert_eq!(config.admin.token.expect("a token").expose(), "t");
    let problems = open(None, &env("acme\n")).expect_err("no key");
    assert!(
        problems[0].to_string().starts_with("keys:1:1: SEGUE_KEYS_FILE: is no tenant's name and key"),
        "{}",
        problems[0]
    );
}

#[test]
fn keys_in_the_environment_make_a_configuration() {
    let env = Fake::default()
        .env("OLLAMA_HOST", "0.0.0.0:11434")
        .env("GROQ_API_KEY", "g")
        .env("ANTHROPIC_API_KEY", "a")
        .env("OPENAI_API_KEY", "  ")
        .env("DEEPSEEK_API_KEY", "d")
        .env("MISTRAL_API_KEY", "m")
        .env("OPENROUTER_API_KEY", "o");
    let loaded = from_environment(&env).expect("keys").unwrap_or_else(|p| panic!("{}", lines(&p)));
    let config = &loaded.config;
    let names: Vec<_> = config.connections.iter().map(|c| &*c.name).collect();
    assert_eq!(names, ["anthropic", "mistral", "deepseek", "groq"]);
    assert_eq!(config.connections[0].api_key.as_ref().map(super::super::Secret::expose), Some("a"));
    let levels: Vec<_> = config.levels.iter().map(|l| &*l.name).collect();
    assert_eq!(levels, ["normal", "high", "low", "voice"]);
    for level in &config.levels {
        let chain: Vec<_> = level.chain.iter().map(|e| &*e.target.connection).collect();
        assert_eq!(chain, names, "{}", level.name);
    }
    let (normal, high) = (&config.levels[0].chain[0].target, &config.levels[1].chain[0].target);
    assert_ne!(normal.model, high.model);
    assert!(!normal.reasons && high.reasons);
    assert_eq!(config.levels[3].retries, 0);
    assert!(config.levels[3].hedge.is_some());
    assert!(config.server.listen.ip().is_loopback() && config.tenants.is_none());
    let told: Vec<_> = loaded.warnings.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(told, ["OPENROUTER_API_KEY", "OLLAMA_HOST"]);
}

#[test]
fn one_provider_is_enough_and_none_is_none() {
    let env = Fake::default().env("OLLAMA_HOST", "gpu.lan");
    let config = from_environment(&env).expect("a host").unwrap_or_else(|p| panic!("{}", lines(&p))).config;
    assert_eq!(config.connections[0].base_url.as_deref(), Some("http://gpu.lan:11434/v1"));
    assert_eq!(config.levels.len(), 4);
    assert!(from_environment(&Fake::default()).is_none());

    let all = from_environment(&Fake::generous()).expect("keys").unwrap_or_else(|p| panic!("{}", lines(&p)));
    let names: Vec<_> = all.config.connections.iter().map(|c| &*c.name).collect();
    assert_eq!(names, ["openai", "anthropic", "gemini", "mistral"]);
    assert_eq!(all.warnings.len(), 4);
    let unwise = check::findings(&all.config).into_iter().filter(|f| f.severity == check::Severity::Warning);
    assert_eq!(unwise.map(|f| f.to_string()).collect::<Vec<_>>(), [] as [String; 0]);
}

#[test]
fn the_base_urls_that_sdks_read_are_read_here_too() {
    let env = Fake::generous()
        .env("OPENAI_BASE_URL", " https://proxy.example.com/openai/v1/ ")
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:4000");
    let config = from_environment(&env).expect("keys").unwrap_or_else(|p| panic!("{}", lines(&p))).config;
    let urls: Vec<_> = config.connections.iter().take(2).map(|c| c.base_url.as_deref()).collect();
    assert_eq!(urls, [Some("https://proxy.example.com/openai/v1"), Some("http://127.0.0.1:4000")]);
    let wrong = Fake::generous().env("OPENAI_BASE_URL", "proxy");
    let problems = from_environment(&wrong).expect("keys").expect_err("no URL");
    assert!(problems[0].to_string().contains("connections.openai.base_url"), "{}", problems[0]);
}

#[test]
fn what_is_made_of_the_environment_is_a_file_to_start_from() {
    let text = zero::text(&Fake::generous()).expect("keys");
    assert!(!text.contains("hush"), "{text}");
    let config = super::load(&text, "segue.toml", &Fake::generous()).unwrap_or_else(|p| panic!("{}", lines(&p))).config;
    assert_eq!(Some(config), from_environment(&Fake::generous()).and_then(Result::ok).map(|l| l.config));
    assert_eq!(zero::text(&Fake::default()), None);
}

#[test]
fn a_key_that_cannot_be_sent_is_an_error_here_too() {
    let env = Fake::default().env("OPENAI_API_KEY", "sk-ö");
    let problems = from_environment(&env).expect("a key").expect_err("bad");
    assert!(
        problems[0].message.contains("`OPENAI_API_KEY`, which holds the API key of the connection `openai`"),
        "{}",
        problems[0]
    );
}
