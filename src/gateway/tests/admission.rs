//! Limits of keys, tenants and the gateway: each its own refusal, and everything comes back.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::*;
use crate::config;
use crate::gateway::caller::TenantView;
use crate::health::jitter::Seeds;

fn config(key: &str, tenant: &str, global: &str) -> Config {
    let text = format!(
        "[connections.a]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
         [levels.main]\nchain = [{{ connection = \"a\", model = \"m\" }}]\n\
         [tenants.t]\nkeys = [{{ sha256 = \"{}\", limits = {{ {key} }} }}, {{ sha256 = \"{}\" }}]\n\
         limits = {{ {tenant} }}\n[limits]\n{global}\n",
        "01".repeat(32),
        "02".repeat(32)
    );
    config::load(&text, "t.toml", &config::Nothing).unwrap().config
}

/// The caller with the limited key, or with the other one.
fn caller(config: &Config, key: u8) -> Caller {
    let tenant = TenantView::of(&config.tenants.as_ref().unwrap()[0]);
    Caller { tenant: Some(Arc::new(tenant)), key: Some([key; 32]) }
}

fn start() -> Instant {
    tokio::time::Instant::now().into_std()
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn each_level_has_its_own_refusal_and_none_takes_anything() {
    let now = start();
    for (key, tenant, global, code) in [
        ("rpm = 1", "", "", "rate_limit_key"),
        ("", "rpm = 1", "", "rate_limit_tenant"),
        ("", "", "rpm = 1", "rate_limit_global"),
        ("in_flight = 1", "", "", "rate_limit_key"),
        ("", "in_flight = 1", "", "rate_limit_tenant"),
        ("", "", "in_flight = 1", "rate_limit_global"),
        ("tpm = 150", "", "", "rate_limit_key"),
        ("", "tpm = 150", "", "rate_limit_tenant"),
        ("", "", "tpm = 150", "rate_limit_global"),
    ] {
        let config = config(key, tenant, global);
        let admission = Admission::new(&config, None);
        let caller = caller(&config, 1);
        let held = admission.admit(&caller, 100, now).unwrap();
        let refusal = admission.admit(&caller, 100, now).err().unwrap();
        assert_eq!((&*refusal.code, refusal.reason.status()), (code, 429), "{key} {tenant} {global}");
        let wait = refusal.retry_after.unwrap();
        assert!(Duration::ZERO < wait && wait <= 60 * SECOND, "{wait:?}");
        drop(held);
        // Nothing was sent, so nothing is used up; and the refused one took nothing of the other levels.
        let again = admission.admit(&caller, 100, now).unwrap();
        drop(again);
        let at = now + wait;
        let mut sent = admission.admit(&caller, 100, now).unwrap();
        sent.settle(100, now);
        assert!(admission.admit(&caller, 100, at).is_ok(), "{code}: to come when told is to be let in");
    }
}

#[test]
fn another_key_of_the_tenant_is_not_held_to_the_first_ones_limits() {
    let now = start();
    let config = config("in_flight = 1", "in_flight = 2", "");
    let admission = Admission::new(&config, None);
    let first = admission.admit(&caller(&config, 1), 1, now).unwrap();
    let second = admission.admit(&caller(&config, 2), 1, now).unwrap();
    assert_eq!(admission.admit(&caller(&config, 2), 1, now).err().unwrap().code, "rate_limit_tenant");
    drop(first);
    assert!(admission.admit(&caller(&config, 2), 1, now).is_ok());
    drop(second);
}

#[test]
fn tokens_are_settled_by_what_was_used() {
    let now = start();
    let config = config("", "tpm = 1000", "");
    let admission = Admission::new(&config, None);
    let caller = caller(&config, 1);
    let mut cheap = admission.admit(&caller, 900, now).unwrap();
    assert!(admission.admit(&caller, 200, now).is_err());
    cheap.settle(100, now);
    let mut dear = admission.admit(&caller, 200, now).unwrap();
    dear.settle(2900, now);
    // 3000 are used: two minutes of the limit are owed before anything else begins.
    let wait = admission.admit(&caller, 1, now).err().unwrap().retry_after.unwrap();
    assert!(120 * SECOND <= wait && wait < 121 * SECOND, "{wait:?}");
}

#[test]
fn a_reload_keeps_what_is_used_and_open() {
    let now = start();
    let old = config("", "in_flight = 2", "");
    let admission = Admission::new(&old, None);
    let caller = caller(&old, 1);
    let (first, second) = (admission.admit(&caller, 1, now).unwrap(), admission.admit(&caller, 1, now).unwrap());
    let more = Admission::new(&config("", "in_flight = 3", ""), Some(&admission));
    let third = more.admit(&caller, 1, now).unwrap();
    assert_eq!(more.admit(&caller, 1, now).err().unwrap().code, "rate_limit_tenant");
    drop((first, second));
    assert!(more.admit(&caller, 1, now).is_ok(), "turns of before give back what they hold");
    drop(third);
}

#[test]
fn however_turns_end_no_place_is_lost() {
    let now = start();
    let config = config("in_flight = 7", "in_flight = 5", "in_flight = 6");
    let admission = Admission::new(&config, None);
    let mut seeds = Seeds::new(3);
    let mut held: Vec<Permits> = Vec::new();
    for _ in 0..10_000 {
        match seeds.draw() % 3 {
            0 if !held.is_empty() => drop(held.swap_remove(seeds.draw() as usize % held.len())),
            1 if !held.is_empty() => held.swap_remove(0).settle(seeds.draw() % 50, now),
            _ => held.extend(admission.admit(&caller(&config, 1), 1, now)),
        }
        assert!(held.len() <= 5);
    }
    held.clear();
    assert_eq!(lock(&admission.global.0).in_flight, 0);
    assert!(admission.tenants.values().chain(admission.keys.values()).all(|m| lock(&m.0).in_flight == 0));
}
