//! Turns of one conversation that meet.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::{Instant, timeout};

/// A turn that keeps its place until it is superseded.
struct Turn {
    place: Mutex<Option<Place>>,
    ended: AtomicUsize,
}

impl Supersede for Turn {
    fn supersede(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        drop(self.place.lock().unwrap().take());
    }
}

fn key() -> Key {
    Key::new(Some("t"), "c")
}

async fn take(places: &Arc<Places>, policy: Concurrency) -> Result<Place, Busy> {
    places.take(key(), policy, Duration::from_secs(5), &CancellationToken::new()).await
}

fn turn(place: Place) -> Arc<Turn> {
    let hold = place.hold();
    let turn = Arc::new(Turn { place: Mutex::new(Some(place)), ended: AtomicUsize::new(0) });
    let weak: Weak<Turn> = Arc::downgrade(&turn);
    hold.reach(weak);
    turn
}

/// Lets every task that can run do so.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_free_conversation_is_taken_at_once_and_given_back_on_drop() {
    let places = Arc::new(Places::default());
    for policy in [Concurrency::Reject, Concurrency::Queue, Concurrency::Supersede] {
        let place = take(&places, policy).await.unwrap();
        let other = Key::new(Some("u"), "c");
        let none = CancellationToken::new();
        assert!(places.take(other, Concurrency::Reject, GRACE, &none).await.is_ok(), "another tenant's is another");
        drop(place);
        assert!(places.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_turn_is_rejected_after_the_grace_and_not_before() {
    let places = Arc::new(Places::default());
    let first = take(&places, Concurrency::Reject).await.unwrap();
    let start = Instant::now();
    assert_eq!(take(&places, Concurrency::Reject).await.err(), Some(Busy::Held));
    assert_eq!(start.elapsed(), GRACE);
    // A hang-up that comes within it makes room.
    let second = tokio::spawn({
        let places = Arc::clone(&places);
        async move { take(&places, Concurrency::Reject).await }
    });
    tokio::time::sleep(GRACE / 2).await;
    drop(first);
    assert!(second.await.unwrap().is_ok());
    assert!(places.is_empty());
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_are_served_in_order_and_those_who_left_are_passed_over() {
    let places = Arc::new(Places::default());
    let first = take(&places, Concurrency::Queue).await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut waiting = Vec::new();
    for number in 0..4 {
        let (places, order) = (Arc::clone(&places), Arc::clone(&order));
        waiting.push(tokio::spawn(async move {
            let place = take(&places, Concurrency::Queue).await;
            order.lock().unwrap().push((number, place.is_ok()));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }));
        settle().await;
    }
    waiting.remove(1).abort();
    settle().await;
    drop(first);
    for task in waiting {
        task.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [(0, true), (2, true), (3, true)]);
    assert!(places.is_empty());
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_with_the_patience_of_the_turn() {
    let places = Arc::new(Places::default());
    let first = take(&places, Concurrency::Queue).await.unwrap();
    let start = Instant::now();
    assert_eq!(take(&places, Concurrency::Queue).await.err(), Some(Busy::Waited));
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    let parent = CancellationToken::new();
    let waits = places.take(key(), Concurrency::Queue, Duration::from_secs(5), &parent);
    parent.cancel();
    assert_eq!(waits.await.err(), Some(Busy::Draining));
    drop(first);
    assert!(places.is_empty());
}

#[tokio::test(start_paused = true)]
async fn to_supersede_ends_the_holder_though_nobody_polls_it() {
    let places = Arc::new(Places::default());
    let old = turn(take(&places, Concurrency::Supersede).await.unwrap());
    let start = Instant::now();
    let new = take(&places, Concurrency::Supersede).await.unwrap();
    assert_eq!((old.ended.load(Ordering::Relaxed), start.elapsed()), (1, Duration::ZERO));
    assert!(!new.token().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn the_newest_turn_wins_and_those_who_waited_are_told() {
    let places = Arc::new(Places::default());
    // A holder that is just beginning is not reached yet; it is told by its token.
    let holder = take(&places, Concurrency::Supersede).await.unwrap();
    let wait = |places: &Arc<Places>| {
        let places = Arc::clone(places);
        tokio::spawn(async move { take(&places, Concurrency::Supersede).await })
    };
    let older = wait(&places);
    settle().await;
    assert!(holder.token().is_cancelled());
    let newer = wait(&places);
    settle().await;
    assert_eq!(timeout(Duration::from_millis(1), older).await.unwrap().unwrap().err(), Some(Busy::Superseded));
    drop(holder);
    assert!(newer.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_line_is_bounded() {
    let places = Arc::new(Places::default());
    let first = take(&places, Concurrency::Queue).await.unwrap();
    let waiting: Vec<_> = (0..WAITING)
        .map(|_| {
            let places = Arc::clone(&places);
            tokio::spawn(async move { take(&places, Concurrency::Queue).await.map(drop) })
        })
        .collect();
    settle().await;
    assert_eq!(take(&places, Concurrency::Queue).await.err(), Some(Busy::Full));
    drop(first);
    for task in waiting {
        assert!(task.await.unwrap().is_ok());
    }
    assert!(places.is_empty());
}
