//! Numbers from records that were made by hand.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::score;
use crate::bench::continuity::judge::{By, Verdict};
use crate::bench::continuity::manifest::Mode;
use crate::bench::continuity::record::{End, Heard, Record, Seam};
use crate::bench::stats::{Share, Spread};

fn record(system: &str, run: u32, number: usize, probe: Heard) -> Record {
    Record {
        system: system.into(),
        run,
        conversation: format!("c{number}"),
        length: [7, 9, 11][number % 3],
        fact_type: ["date", "number"][number % 2].into(),
        turns: vec![probe],
    }
}

fn whole(total_ms: f64) -> Heard {
    Heard {
        turn: 6,
        text: "yes".into(),
        end: End::Finished,
        first_ms: Some(total_ms / 2.0),
        total_ms,
        silence_ms: 5.0,
        seam: Some(Seam::default()),
        provider_requests: 1,
        provider_ms: total_ms - 10.0,
        tokens: [100, 20],
        history_arrived: Some(true),
        ..Heard::default()
    }
}

fn struck(total_ms: f64, mode: Mode) -> Heard {
    Heard { planned: Some(mode), struck: true, depth: 1, gap_ms: Some(40.0), provider_requests: 2, ..whole(total_ms) }
}

fn verdict(preserved: bool) -> Verdict {
    Verdict { preserved, by: By::Search, reasoning: String::new() }
}

#[test]
fn rates_are_pooled_and_told_by_part() {
    let mut records = Vec::new();
    let mut verdicts = Vec::new();
    for run in 0..5 {
        for number in 0..150 {
            records.push(record("history", run, number, struck(100.0, Mode::Timeout)));
            // Six of 750 are lost: three in each of the first two runs.
            verdicts.push(verdict(run > 1 || number > 2));
        }
    }
    let score = score(&records, &[], &verdicts);
    let kept = &score.systems[0].kept;
    assert_eq!(kept.cpr, Share::new(744, 750));
    let runs: Vec<(&str, usize)> = kept.by_run.iter().map(|slice| (slice.of.as_str(), slice.rate.hits)).collect();
    assert_eq!(runs, [("1", 147), ("2", 147), ("3", 150), ("4", 150), ("5", 150)]);
    let lengths: Vec<&str> = kept.by_length.iter().map(|slice| slice.of.as_str()).collect();
    assert_eq!(lengths, ["7", "9", "11"]);
    assert_eq!(kept.by_fact.iter().map(|slice| slice.rate.of).sum::<usize>(), 750);
    assert_eq!((kept.by_depth[0].of.as_str(), kept.by_mode[0].of.as_str()), ("1", "timeout"));
    assert_eq!((kept.struck, kept.not_kept.model, kept.sir), (750, 6, None));
    assert_eq!(score.systems[0].timed.unpaired, 750, "there is nothing to compare with");
}

#[test]
fn overhead_is_paired_by_system_run_and_conversation() {
    let baseline = [
        record("splice", 0, 0, whole(100.0)),
        record("splice", 0, 1, whole(200.0)),
        record("splice", 1, 0, whole(1000.0)),
        record("history", 0, 0, whole(5000.0)),
        record("splice", 0, 3, whole(100.0)),
    ];
    let cut = Heard { end: End::Cut, ..struck(1.0, Mode::Reset) };
    let records = [
        record("splice", 0, 0, struck(150.0, Mode::Reset)),
        record("splice", 0, 1, struck(190.0, Mode::Reset)),
        record("splice", 1, 0, struck(1300.0, Mode::Reset)),
        // Neither counts: nothing struck the one, the other has no end.
        record("splice", 0, 2, whole(9999.0)),
        record("splice", 0, 3, cut),
    ];
    let timed = score(&records, &baseline, &[]).systems.remove(0).timed;
    let mean = (50.0 - 10.0 + 300.0) / 3.0;
    let want = Spread { count: 3, mean, p25: -10.0, median: 50.0, p75: 300.0, p95: 300.0 };
    assert_eq!(timed.clo, Some(want));
    assert_eq!(timed.clo_first.unwrap().median, 25.0);
    assert_eq!(timed.unpaired, 1);
    assert_eq!((timed.provider_requests, timed.tokens_sent, timed.tokens_generated), (9, 500, 100));
    assert_eq!(timed.queue.unwrap().p50, 10.0);
    assert_eq!((timed.gap.unwrap().count, timed.silence.unwrap().max), (4, 5.0));
}

#[test]
fn seams_count_where_an_answer_broke_in_the_middle() {
    let bad = |lost, repeated, foreign, faked| Heard {
        seam: Some(Seam { lost, repeated, foreign, faked }),
        ..struck(100.0, Mode::Stall)
    };
    let records = [
        record("s", 0, 0, struck(100.0, Mode::Stall)),
        record("s", 0, 1, bad(3, 0, 0, false)),
        record("s", 0, 2, bad(0, 7, 0, false)),
        record("s", 0, 3, bad(0, 0, 11, true)),
        // Whole as far as it goes, but told as an error.
        record("s", 0, 4, Heard { end: End::Error("lost".into()), ..struck(100.0, Mode::Reset) }),
        // No seam: it failed before the first word; it did not fail; nobody can know.
        record("s", 0, 5, struck(100.0, Mode::ApiError)),
        record("s", 0, 6, Heard { planned: Some(Mode::Reset), ..whole(100.0) }),
        record("s", 0, 7, Heard { seam: None, ..struck(100.0, Mode::Reset) }),
    ];
    let system = score(&records, &[], &[]).systems.remove(0);
    let (kept, timed) = (system.kept, system.timed);
    assert_eq!(kept.sir, Share::new(1, 5));
    assert_eq!(kept.seams_unknown, 1);
    let modes: Vec<(&str, Option<Share>)> =
        kept.sir_by_mode.iter().map(|slice| (slice.of.as_str(), Some(slice.rate))).collect();
    assert_eq!(modes, [("stall", Share::new(1, 4)), ("reset", Share::new(0, 1))]);
    assert_eq!((kept.sir_by_depth.len(), kept.sir_by_depth[0].rate.of), (1, 5));
    assert_eq!((timed.lost, timed.repeated, timed.foreign, kept.faked, kept.garbled), (3, 7, 11, 1, 3));
    assert_eq!((kept.ends.finished, kept.ends.error, kept.ends.cut), (7, 1, 0));
}

#[test]
fn a_lost_fact_has_a_cause() {
    let with = |history_arrived| Heard { history_arrived, ..whole(1.0) };
    let mut records = vec![
        record("s", 0, 0, with(Some(false))),
        record("s", 0, 1, with(Some(true))),
        record("s", 0, 2, with(None)),
        record("s", 0, 3, Heard { end: End::Cut, ..with(Some(true)) }),
        record("s", 0, 4, with(Some(false))),
    ];
    records.push(Record { turns: Vec::new(), ..record("s", 0, 5, whole(1.0)) });
    let faked = Some(Seam { lost: 40, faked: true, ..Seam::default() });
    records.push(record("s", 0, 6, Heard { seam: faked, ..with(Some(true)) }));
    let mut verdicts = vec![verdict(false); 7];
    verdicts[4] = verdict(true);
    let kept = score(&records, &[], &verdicts).systems.remove(0).kept;
    let causes = kept.not_kept;
    assert_eq!((causes.forwarding, causes.model, causes.unknown, causes.no_answer), (1, 1, 1, 3));
    assert_eq!(kept.cpr, Share::new(1, 7));
}

#[test]
fn systems_stand_in_the_order_of_their_first_record() {
    let records = [record("z", 0, 0, whole(1.0)), record("a", 0, 0, whole(1.0)), record("z", 1, 0, whole(1.0))];
    let score = score(&records, &[], &[]);
    let names: Vec<(&str, usize)> =
        score.systems.iter().map(|system| (system.name.as_str(), system.kept.by_run.len())).collect();
    assert_eq!(names, [("z", 2), ("a", 1)]);
}
