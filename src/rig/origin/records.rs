//! What an origin was asked, and how each answer ended. Bounded: the oldest records go first.

use super::http::{self, Head};
use crate::rig::reading::Reading;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The requests of one origin, oldest first.
#[derive(Debug, Default)]
pub struct Records {
    list: Mutex<List>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct List {
    records: VecDeque<Record>,
    /// Bytes of their requests.
    bytes: usize,
    total: u64,
    open: u64,
    peak: u64,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its number, from 0.
    pub number: u64,
    /// When it had been read.
    pub at: Instant,
    /// Path and query.
    pub path: String,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
    /// How it was understood.
    pub reading: Reading,
    /// How its answer ended.
    pub fate: Fate,
    /// When that was.
    pub ended: Option<Instant>,
    /// When the last byte was written.
    pub written: Option<Instant>,
    /// Bytes of the answer that were written, head included.
    pub sent: u64,
    /// Tokens that were written.
    pub tokens: usize,
    /// Bytes of the request's body.
    pub received: usize,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is under way.
    Open,
    /// The script was played to its end.
    Told,
    /// The peer left before.
    Cancelled,
    /// The origin was stopped before.
    Stopped,
}

/// Keeps one record up to date; it is settled when this goes.
#[derive(Debug)]
pub(super) struct Ticket {
    records: Arc<Records>,
    number: u64,
    settled: bool,
}

// === impl Records ===

impl Records {
    /// The most records that are kept.
    pub const MOST: usize = 4096;

    /// The most bytes of requests that are kept; the newest is kept whatever its size.
    pub const MOST_BYTES: usize = 64 << 20;

    /// All that are kept, oldest first.
    pub fn all(&self) -> Vec<Record> {
        self.lock().records.iter().cloned().collect()
    }

    /// Request number `number`, if it is kept.
    pub fn get(&self, number: u64) -> Option<Record> {
        self.lock().records.iter().find(|record| record.number == number).cloned()
    }

    /// How many requests there were, records that are gone included.
    pub fn total(&self) -> u64 {
        self.lock().total
    }

    /// How many are under way.
    pub fn open_now(&self) -> u64 {
        self.lock().open
    }

    /// How many were under way at the same time, at most.
    pub fn peak(&self) -> u64 {
        self.lock().peak
    }

    /// Waits until `done` holds, at most for `limit`; `false` if it does not.
    pub async fn until(&self, limit: Duration, mut done: impl FnMut(&[Record]) -> bool) -> bool {
        let wait = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if done(self.lock().records.make_contiguous()) {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(limit, wait).await.is_ok()
    }

    pub(super) fn open(&self, record: Record) -> u64 {
        let number = record.number;
        let mut list = self.lock();
        list.bytes += record.received;
        while list.records.len() == Self::MOST || list.bytes > Self::MOST_BYTES {
            let Some(oldest) = list.records.pop_front() else { break };
            list.bytes -= oldest.received;
        }
        list.records.push_back(record);
        list.total += 1;
        list.open += 1;
        list.peak = list.peak.max(list.open);
        drop(list);
        self.changed.notify_waiters();
        number
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Record)) {
        let mut list = self.lock();
        // They lie nearly always in the order of their numbers; two that came at the same time may be swapped.
        let first = list.records.front().map_or(0, |record| record.number);
        let guess = usize::try_from(number.wrapping_sub(first)).unwrap_or(usize::MAX);
        let at = match list.records.get(guess) {
            Some(record) if record.number == number => Some(guess),
            _ => list.records.iter().position(|record| record.number == number),
        };
        if let Some(record) = at.and_then(|at| list.records.get_mut(at)) {
            change(record);
        }
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Record ===

impl Record {
    pub(super) fn new(number: u64, at: Instant, head: Head, body: Value, received: usize, reading: Reading) -> Self {
        Self {
            number,
            at,
            path: head.path,
            headers: head.headers,
            body,
            reading,
            fate: Fate::Open,
            ended: None,
            written: None,
            sent: 0,
            tokens: 0,
            received,
        }
    }

    /// The value of the header `name` (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        http::header(&self.headers, name)
    }

    /// How long after its arrival it ended; `None` while it is under way.
    pub fn lasted(&self) -> Option<Duration> {
        self.ended.map(|ended| ended.duration_since(self.at))
    }
}

// === impl Ticket ===

impl Ticket {
    pub(super) fn new(records: Arc<Records>, number: u64) -> Self {
        Self { records, number, settled: false }
    }

    /// So much has been written.
    pub(super) fn wrote(&self, sent: u64, tokens: usize) {
        let now = Instant::now();
        self.records.change(self.number, |record| {
            record.sent = sent;
            record.tokens = tokens;
            record.written = Some(now);
        });
    }

    /// It is over.
    pub(super) fn settle(mut self, fate: Fate) {
        self.end(fate);
    }

    fn end(&mut self, fate: Fate) {
        if std::mem::replace(&mut self.settled, true) {
            return;
        }
        let now = Instant::now();
        self.records.change(self.number, |record| {
            record.fate = fate;
            record.ended = Some(now);
        });
        self.records.lock().open -= 1;
        self.records.changed.notify_waiters();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.end(Fate::Stopped);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

    use super::{Arc, Fate, Head, Instant, Reading, Record, Records, Ticket, Value};

    fn record(number: u64, received: usize) -> Record {
        Record::new(number, Instant::now(), Head::default(), Value::Null, received, Reading::default())
    }

    #[test]
    fn the_oldest_records_go_by_number_and_by_bytes() {
        let records = Records::default();
        for number in 0..Records::MOST as u64 + 10 {
            records.open(record(number, 1));
        }
        assert_eq!(
            (records.all().len(), records.get(9).is_none(), records.get(10).is_some()),
            (Records::MOST, true, true)
        );
        records.open(record(90_000, Records::MOST_BYTES - 5));
        assert_eq!(records.all().len(), 6);
        records.open(record(90_001, Records::MOST_BYTES * 2));
        assert_eq!(records.all().len(), 1, "the newest is kept whatever its size");
        assert_eq!(records.total(), Records::MOST as u64 + 12);
    }

    #[test]
    fn records_are_found_in_any_order_and_settled_once() {
        let records = Arc::new(Records::default());
        let tickets: Vec<Ticket> = [1, 0, 3, 2]
            .map(|number| {
                records.open(record(number, 1));
                Ticket::new(Arc::clone(&records), number)
            })
            .into();
        for ticket in &tickets {
            ticket.wrote(100 + ticket.number, 1);
        }
        for number in 0..4 {
            assert_eq!(records.get(number).unwrap().sent, 100 + number);
        }
        let mut tickets = tickets.into_iter();
        tickets.next().unwrap().settle(Fate::Told);
        drop(tickets);
        assert_eq!((records.get(1).unwrap().fate, records.get(3).unwrap().fate), (Fate::Told, Fate::Stopped));
        assert_eq!((records.open_now(), records.peak()), (0, 4));
    }
}
