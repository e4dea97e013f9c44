//! What a piece of work costs its thread: CPU time and heap.
//!
//! Time is the thread's own, and the least of several runs, so that other work on the machine decides nothing. What looks
//! too dear is measured again, several times, and then at sixteen times the size, before it is called so: a cache that the
//! larger input does not fit into slows it down once, what is quadratic gets worse each time.

use rustix::time::{ClockId, clock_gettime};
use std::fmt;
use std::time::Duration;

/// The cost of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// CPU time of the thread.
    pub(crate) time: Duration,
    /// Bytes of heap that were asked for, in all.
    pub(crate) bytes: u64,
    /// The most of them that were held at once.
    pub(crate) peak: u64,
}

/// What is wrong with the cost of some work, and for which input.
pub(crate) struct Dear {
    what: String,
    size: usize,
    small: Cost,
    large: Cost,
    why: &'static str,
}

/// The cost of `work`, done once.
pub(crate) fn cost(work: impl FnOnce()) -> Cost {
    let mut time = Duration::ZERO;
    let heap = allocation_counter::measure(|| {
        let before = now();
        work();
        time = now().saturating_sub(before);
    });
    Cost { time, bytes: heap.bytes_total, peak: heap.bytes_max }
}

/// Whether work on an input of four times `size` costs less than five times as much, and no more heap than `most` times
/// the input's bytes. `make` gives an input of about so many bytes, and how many they are; it is not measured.
pub(crate) fn linear<I>(
    what: &dyn Fn() -> String,
    (size, most): (usize, u64),
    make: &dyn Fn(usize) -> (I, usize),
    work: &dyn Fn(&I),
) -> Option<Dear> {
    let ((small, _), (large, length)) = (make(size), make(4 * size));
    let measure = |input: &I| cost(|| work(input));
    let (mut s, mut l) = (measure(&small), measure(&large));
    for round in 0..ROUNDS {
        let too_long = l.time > s.time.max(LEAST_TIME) * FACTOR;
        let too_much = l.bytes > s.bytes * u64::from(FACTOR) + LEAST_BYTES;
        let too_large = l.peak > length as u64 * most + LEAST_BYTES;
        // Heap is exact: measured once, it is known.
        let why = match (too_large, too_much, too_long) {
            (true, ..) => Some("holds too many bytes for its input"),
            (_, true, _) => Some("asks for more than five times the heap for four times the input"),
            (.., true) if round + 1 == ROUNDS => {
                let (huge, _) = make(16 * size);
                let h = (0..3).map(|_| measure(&huge).time).min().unwrap_or_default();
                if h <= s.time.max(LEAST_TIME) * FACTOR * FACTOR || h <= l.time * WORSE {
                    return None;
                }
                Some("takes more than five times as long for four times the input, and so on")
            }
            (false, false, false) => return None,
            _ => None,
        };
        if let Some(why) = why {
            return Some(Dear { what: what(), size, small: s, large: l, why });
        }
        s.time = s.time.min(measure(&small).time);
        l.time = l.time.min(measure(&large).time);
    }
    None
}

/// Fails with everything that is too dear.
pub(crate) fn report(dear: &[Dear]) {
    let lines: Vec<String> = dear.iter().map(ToString::to_string).collect();
    assert!(dear.is_empty(), "{} of them cost too much:\n{}", dear.len(), lines.join("\n"));
}

impl fmt::Display for Dear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, size, small, large, why } = self;
        write!(f, "{what}: {why}")?;
        for (size, cost) in [(*size, small), (4 * size, large)] {
            write!(f, "; at {size} bytes {:?}, {} bytes of heap, {} at once", cost.time, cost.bytes, cost.peak)?;
        }
        Ok(())
    }
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// The smaller input, in bytes, of the few that are many of one thing, and of the many that are one thing in some place.
/// The larger input is four times as large.
pub(crate) const MANY: usize = 20_000;
pub(crate) const PLACED: usize = 4_000;

/// How often what looks too dear is measured before it is called so.
const ROUNDS: u32 = 8;

/// Four times the input may cost so many times as much.
const FACTOR: u32 = 5;

/// What takes longer than its input explains gets worse with its size: of a cost of `a·n + b·n²` that is five times as much
/// at `4n`, another four times the input makes more than seven times as much; of one that is linear, about four.
const WORSE: u32 = 7;

/// What is faster than this is told from nothing by chance alone.
const LEAST_TIME: Duration = Duration::from_micros(300);

/// What is set up once, whatever the input.
const LEAST_BYTES: u64 = 256 << 10;
