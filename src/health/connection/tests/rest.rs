//! After a rest: how soon a provider is used as before, and that nobody waits who need not.

use super::*;
use std::cmp::Reverse;

/// What happened to a load of turns at one target that was limited once.
struct Played {
    /// When each turn came, and how long until its first word; `None`: it went elsewhere, or gave up.
    turns: Vec<(Duration, Option<Duration>)>,
    /// When requests came to the provider.
    asked: Vec<Duration>,
    /// When the provider began to refuse.
    refused: Duration,
}

/// A load at a provider that answers after `trip`, and refuses one request five seconds in.
struct Load {
    rate: f64,
    trip: Duration,
    kind: Kind,
    wait: Duration,
    /// Another target is idle.
    others: bool,
    seed: u64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Answer(usize),
    /// A turn comes, or looks again.
    Look(usize),
}

/// As the gateway: nobody gives up sooner.
const PATIENCE: Duration = Duration::from_secs(8);
const LASTS: Duration = Duration::from_secs(20);
const REFUSES: Duration = Duration::from_secs(5);

impl Load {
    /// Plays it as the fleet does: who must wait waits in order; who is told to come later comes then.
    fn play(&self) -> Played {
        let origin = start();
        let mut connection = healthy(self.seed);
        let mut due = BinaryHeap::new();
        let count = (LASTS.as_secs_f64() * self.rate) as usize;
        let came = |turn: usize| Duration::from_secs_f64(turn as f64 / self.rate);
        (0..count).for_each(|turn| due.push(Reverse((came(turn), Due::Look(turn)))));
        let mut played = Played {
            turns: (0..count).map(|turn| (came(turn), None)).collect(),
            asked: Vec::new(),
            refused: Duration::ZERO,
        };
        let mut entered = vec![false; count];
        let (mut line, mut flights) = (std::collections::VecDeque::new(), std::collections::BTreeMap::new());
        while let Some(Reverse((at, what))) = due.pop() {
            let now = origin + at;
            match what {
                Due::Answer(turn) => {
                    let mut flight: Flight = flights.remove(&turn).unwrap();
                    let refuses = played.refused.is_zero() && REFUSES <= at;
                    let failure = limited(self.kind, Some(self.wait));
                    let said =
                        if refuses { vec![failed(&failure)] } else { vec![Signal::Opened, text(), Signal::Ended] };
                    for signal in said {
                        if flight.note(&signal, now) {
                            connection.hear(&mut flight, now);
                        }
                    }
                    connection.settle(flight, None, if refuses { failure.verdict() } else { Verdict::Serve }, now);
                    if refuses {
                        played.refused = at;
                    } else {
                        played.turns[turn].1 = Some(at - came(turn));
                    }
                }
                Due::Look(turn) => {
                    if !entered[turn] {
                        match connection.look(&wish(Plaintiff::default(), self.others), line.len(), now) {
                            Look::No(Declined::Resting { .. } | Declined::Crowded { .. }) if self.others => continue,
                            Look::No(Declined::Resting { until, .. }) => {
                                due.push(Reverse((until - origin, Due::Look(turn))));
                                continue;
                            }
                            Look::No(denied) => panic!("{denied:?}"),
                            Look::Go | Look::Later(_) => {
                                entered[turn] = true;
                                line.push_back(turn);
                            }
                        }
                    }
                }
            }
            // Whoever is at the head looks.
            while let Some(turn) = line.front().copied() {
                if PATIENCE < at - came(turn) {
                    line.pop_front();
                    continue;
                }
                match connection.admit(&wish(Plaintiff::default(), self.others), now) {
                    Ok(flight) => {
                        line.pop_front();
                        flights.insert(turn, flight);
                        played.asked.push(at);
                        due.push(Reverse((at + self.trip, Due::Answer(turn))));
                    }
                    Err(Look::Later(later)) => {
                        due.push(Reverse((later - origin, Due::Look(turn))));
                        break;
                    }
                    Err(_) => drop(line.pop_front()),
                }
            }
        }
        assert_eq!(connection.held(), Held::default());
        played
    }
}

fn load(rate: f64, trip: Duration, kind: Kind, wait: Duration, others: bool, seed: u64) -> Played {
    Load { rate, trip, kind, wait, others, seed }.play()
}

#[test]
fn three_seconds_after_a_rest_a_target_answers_as_fast_as_before() {
    for seed in 0..20 {
        for kind in [Kind::RateLimited, Kind::Overloaded] {
            for (rate, trip) in [(20.0, 50 * MS), (60.0, 50 * MS), (60.0, 300 * MS), (200.0, 20 * MS), (5.0, 800 * MS)]
            {
                let played = load(rate, trip, kind, SECOND, false, seed);
                // A rest of a second is released up to a second after it.
                let healed = played.refused + 2 * SECOND + 2 * SECOND;
                for (came, waited) in &played.turns {
                    let Some(waited) = waited else {
                        assert!(*came <= played.refused, "one that came at {came:?} was not served");
                        continue;
                    };
                    assert!(
                        *came < healed || *waited <= trip + 300 * MS,
                        "{kind:?} {rate}/s {trip:?}: {waited:?} at {came:?}"
                    );
                    assert!(*waited < 5 * SECOND + trip, "{waited:?}");
                }
                assert_eq!(
                    played.turns.iter().filter(|(_, waited)| waited.is_none()).count(),
                    1,
                    "the one that was refused"
                );
            }
        }
    }
}

#[test]
fn nobody_waits_where_another_target_is_idle() {
    for seed in 0..20 {
        let played = load(60.0, 50 * MS, Kind::RateLimited, SECOND, true, seed);
        let slow = played.turns.iter().filter_map(|(_, waited)| *waited).filter(|waited| 60 * MS < *waited).count();
        assert!(slow <= 1, "{slow} waited, and the first after the rest is let wait for it");
        let late = played.turns.iter().filter(|(came, waited)| played.refused + 3 * SECOND < *came && waited.is_none());
        assert_eq!(late.count(), 0, "it has its old rate again");
    }
}

#[test]
fn the_first_after_a_rest_goes_alone_and_the_next_are_twice_as_many() {
    let played = load(60.0, 100 * MS, Kind::RateLimited, 2 * SECOND, false, 3);
    let after: Vec<Duration> = played.asked.iter().copied().filter(|at| played.refused + 2 * SECOND <= *at).collect();
    let trip = |from: Duration| after.iter().filter(|at| from <= **at && **at < from + 100 * MS).count();
    let counts: Vec<usize> = (0..5).map(|n| trip(after[0] + n * 100 * MS)).collect();
    assert_eq!(counts, [1, 2, 4, 8, 16]);
}

#[test]
fn a_refused_trial_begins_anew_and_whoever_asks_is_told_that_it_was_renewed() {
    let (mut now, mut connection) = (start(), healthy(1));
    let (by, failure) = (wish(Plaintiff::default(), true), limited(Kind::RateLimited, Some(2 * SECOND)));
    fail(&mut connection, &by, &failure, now);
    assert!(matches!(connection.look(&by, 0, now), Look::No(Declined::Resting { renewed: false, .. })));
    now += 3 * SECOND;
    let others: Vec<_> = (0..3).map(|_| connection.admit(&by, now)).collect();
    let [Ok(trial), Err(Look::No(Declined::Crowded { .. })), Err(Look::No(Declined::Crowded { .. }))] =
        <[_; 3]>::try_from(others).unwrap()
    else {
        panic!("one tries, and the others go elsewhere")
    };
    let mut trial = trial;
    assert!(trial.note(&failed(&failure), now));
    connection.hear(&mut trial, now);
    connection.settle(trial, None, Verdict::Abandon, now);
    assert!(matches!(connection.look(&by, 0, now), Look::No(Declined::Resting { renewed: true, .. })));
}

#[test]
fn a_trial_that_is_refused_without_a_time_rests_all_the_same() {
    let (mut now, mut connection) = (start(), healthy(1));
    let by = wish(Plaintiff::default(), true);
    fail(&mut connection, &by, &limited(Kind::RateLimited, None), now);
    assert_eq!(connection.look(&by, 0, now), Look::Go, "no time was told");
    fail(&mut connection, &by, &limited(Kind::RateLimited, Some(SECOND)), now);
    now += 3 * SECOND;
    fail(&mut connection, &by, &limited(Kind::RateLimited, None), now);
    assert!(matches!(connection.look(&by, 0, now), Look::No(Declined::Resting { renewed: true, .. })));
}

#[test]
fn what_is_left_of_its_quota_opens_it_at_once() {
    let (mut now, mut connection) = (start(), healthy(1));
    let by = wish(Plaintiff::default(), false);
    fail(&mut connection, &by, &limited(Kind::RateLimited, Some(SECOND)), now);
    now += 3 * SECOND;
    let mut trial = connection.admit(&by, now).unwrap();
    assert!(connection.admit(&by, now).is_err());
    for signal in [Signal::Left(59), Signal::Opened] {
        if trial.note(&signal, now) {
            connection.hear(&mut trial, now);
        }
    }
    let more: Vec<Flight> = std::iter::from_fn(|| connection.admit(&by, now).ok()).collect();
    assert_eq!(more.len(), 59);
    more.into_iter().chain([trial]).for_each(|flight| connection.settle(flight, None, Verdict::Serve, now));
}

#[test]
fn an_operator_ends_a_rest() {
    for (force, model) in
        [(Force::Close, Some("m")), (Force::Auto, Some("m")), (Force::Auto, None), (Force::Close, None)]
    {
        let (now, mut connection) = (start(), healthy(1));
        let by = wish(Plaintiff::default(), false);
        fail(&mut connection, &by, &limited(Kind::RateLimited, Some(30 * SECOND)), now);
        assert_eq!(connection.views(now)[0].rest, Some(now + 30 * SECOND));
        connection.force(model, force, now);
        assert_eq!((connection.look(&by, 0, now), connection.views(now)[0].rest), (Look::Go, None), "{force:?}");
    }
    let (now, mut connection) = (start(), healthy(1));
    let by = wish(Plaintiff::default(), false);
    fail(&mut connection, &by, &limited(Kind::RateLimited, Some(30 * SECOND)), now);
    connection.wake();
    assert_eq!(connection.look(&by, 0, now), Look::Go);
}
