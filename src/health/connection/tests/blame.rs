//! Whatever one tenant's requests make a provider say, it changes nothing for another.

use super::*;
use crate::health::cases;
use crate::health::jitter::Seeds;

/// One step of somebody's requests.
#[derive(Clone, Copy)]
struct Request {
    at: Duration,
    by: Plaintiff,
    /// What comes of it; `None`: it serves.
    fails: Option<(Kind, Option<Duration>)>,
}

const GOOD: u64 = 1;
const BAD: u64 = 2;

fn random(seeds: &mut Seeds, tenant: u64, count: usize) -> Vec<Request> {
    let kinds = [
        Kind::ServerError,
        Kind::Overloaded,
        Kind::RateLimited,
        Kind::QuotaExhausted,
        Kind::Auth,
        Kind::NotForUs,
        Kind::BadRequest,
        Kind::Repairable,
        Kind::ContextTooLong,
    ];
    let mut at = Duration::ZERO;
    (0..count)
        .map(|_| {
            at += (seeds.draw() % 400) as u32 * MS;
            let kind = kinds[seeds.draw() as usize % kinds.len()];
            let wait = seeds.draw().is_multiple_of(2).then(|| (seeds.draw() % 90) as u32 * SECOND);
            let by = Plaintiff { tenant: Some(Mark(tenant)), credential: None, request: seeds.draw() % 40 };
            // The bad tenant's requests are never served; the good one's now and then fail by status.
            let fails = if tenant == BAD { true } else { seeds.draw().is_multiple_of(30) };
            Request { at, by, fails: fails.then_some((kind, wait)) }
        })
        .collect()
}

/// What the good tenant meets: whether each of its requests is let through, and all changes of the circuit.
fn play(seed: u64, all: &[Request]) -> (Vec<String>, Vec<Transition>) {
    let origin = start();
    let mut connection = Connection::new(Policy { min_samples: 20, ..Policy::default() }, Limits::default(), seed);
    let (mut met, mut changes) = (Vec::new(), Vec::new());
    for request in all {
        let now = origin + request.at;
        let wish = wish(request.by, true);
        let look = connection.look(&wish, 0, now);
        if request.by.tenant == Some(Mark(GOOD)) {
            let look = match look {
                Look::Later(at) => Look::Later(at - request.at),
                other => other,
            };
            let told = match look {
                Look::Go => "goes".to_owned(),
                Look::Later(_) => "later".to_owned(),
                Look::No(denied) => format!("{:?}", std::mem::discriminant(&denied)),
            };
            met.push(format!("{:?}: {told}, {:?}", request.at, connection.first_token("m", 50.0, now)));
        }
        let Ok(mut flight) = connection.admit(&wish, now) else { continue };
        let (signals, verdict) = match request.fails {
            None => (vec![Signal::Opened, text(), Signal::Ended], Verdict::Serve),
            Some((kind, wait)) => {
                let mut failure = limited(kind, wait.filter(|wait| !wait.is_zero()));
                failure.by_words = request.by.tenant == Some(Mark(BAD));
                (vec![failed(&failure)], failure.verdict())
            }
        };
        for signal in signals {
            if flight.note(&signal, now) {
                connection.hear(&mut flight, now);
            }
        }
        connection.settle(flight, None, verdict, now);
        changes.extend(connection.transitions("m"));
    }
    let changes = changes.into_iter().map(|change| Transition { at: origin.max(change.at), ..change }).collect();
    (met, changes)
}

#[test]
fn whatever_one_tenants_requests_make_a_provider_say_another_meets_the_same() {
    for seed in 0..cases(300) {
        let mut seeds = Seeds::new(seed);
        let good = random(&mut seeds, GOOD, 150);
        let mut both: Vec<Request> = good.iter().copied().chain(random(&mut seeds, BAD, 400)).collect();
        both.sort_by_key(|request| request.at);
        let (alone, circuits) = play(seed, &good);
        let (beside, circuits_beside) = play(seed, &both);
        assert_eq!(alone, beside, "seed {seed}");
        // That a cooldown is over is noted when the next turn tries, whoever's it is.
        let kinds = |changes: &[Transition]| {
            let told = changes.iter().filter(|change| change.to != State::HalfOpen);
            told.map(|change| (change.to, change.cause)).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&circuits), kinds(&circuits_beside), "seed {seed}");
    }
}

fn by(tenant: Option<u64>, request: u64) -> Plaintiff {
    Plaintiff { tenant: tenant.map(Mark), credential: None, request }
}

fn says(kind: Kind) -> Failure {
    Failure::new(kind, Stage::Refused).by_words()
}

#[test]
fn several_requests_of_a_tenant_put_a_target_out_for_that_tenant() {
    let (now, mut connection) = (start(), healthy(1));
    for request in 0..3 {
        assert_eq!(connection.look(&wish(by(Some(BAD), 9), true), 0, now), Look::Go);
        fail(&mut connection, &wish(by(Some(BAD), request), true), &says(Kind::QuotaExhausted), now);
    }
    assert!(matches!(connection.look(&wish(by(Some(BAD), 9), true), 0, now), Look::No(Declined::KeyRefused { .. })));
    assert_eq!(connection.look(&wish(by(Some(GOOD), 9), true), 0, now), Look::Go);
    assert_eq!(connection.views(now)[0].state, State::Closed);
    fail(&mut connection, &wish(by(Some(GOOD), 1), true), &says(Kind::QuotaExhausted), now);
    assert_eq!(connection.views(now)[0].state, State::Open, "two tenants say so");
}

#[test]
fn without_tenants_several_different_requests_do_and_a_success_clears_them() {
    let (now, mut connection) = (start(), healthy(1));
    let anybody = |request| wish(by(None, request), true);
    for request in [1, 1, 1, 2] {
        fail(&mut connection, &anybody(request), &says(Kind::QuotaExhausted), now);
    }
    serve(&mut connection, &anybody(3), now);
    for request in [4, 5] {
        fail(&mut connection, &anybody(request), &says(Kind::QuotaExhausted), now);
    }
    assert_eq!(connection.views(now)[0].state, State::Closed);
    fail(&mut connection, &anybody(6), &says(Kind::QuotaExhausted), now);
    assert_eq!(connection.views(now)[0].state, State::Open);
}

#[test]
fn what_a_status_tells_counts_at_once() {
    let (now, mut connection) = (start(), healthy(1));
    fail(&mut connection, &wish(by(Some(BAD), 1), true), &Failure::new(Kind::QuotaExhausted, Stage::Refused), now);
    assert_eq!(connection.views(now)[0].state, State::Open);
}

#[test]
fn words_beside_a_status_that_reads_no_request_are_the_providers_own() {
    for (status, state) in [(400, State::Closed), (403, State::Closed), (402, State::Open), (429, State::Open)] {
        let (now, mut connection) = (start(), healthy(1));
        let failure = Failure { status: Some(status), ..says(Kind::QuotaExhausted) };
        fail(&mut connection, &wish(by(Some(BAD), 1), true), &failure, now);
        assert_eq!(connection.views(now)[0].state, state, "{status}");
    }
}

#[test]
fn an_account_that_is_used_up_is_left_alone_until_the_cooldown_ends() {
    let (now, mut connection) = (start(), healthy(1));
    let own = Plaintiff { credential: Some(Mark(7)), ..by(Some(BAD), 1) };
    fail(&mut connection, &wish(own, true), &Failure::new(Kind::QuotaExhausted, Stage::Refused), now);
    let Look::No(Declined::KeyRefused { until }) = connection.look(&wish(own, true), 0, now) else { panic!("not out") };
    assert_eq!(until - now, Policy::default().max_cooldown);
    assert_eq!(
        connection.look(&wish(by(Some(BAD), 1), true), 0, now),
        Look::Go,
        "the platform's own account is another"
    );
}

#[test]
fn lessons_are_a_tenants_own_until_another_bears_them_out() {
    let (now, mut connection) = (start(), healthy(1));
    let (model, what) = (Arc::from("m"), Mark(3));
    (0..5).for_each(|request| connection.lacks(&model, what, by(Some(BAD), request), true, now));
    let lacking = |connection: &Connection, tenant| connection.is_lacking("m", what, Some(Mark(tenant)), now);
    assert!(lacking(&connection, BAD) && !lacking(&connection, GOOD));
    connection.lacks(&model, what, by(Some(3), 1), true, now);
    assert!(lacking(&connection, GOOD));
    connection.force(None, Force::Auto, now);
    assert!(!lacking(&connection, GOOD), "an operator makes it forget");
}
