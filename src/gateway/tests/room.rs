//! Places for turns: bars, the line, and that every place comes back.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::*;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

fn level(shed_at: Option<f64>, queue: Option<u64>) -> Level {
    Level { shed_at, queue: queue.map(Duration::from_secs), ..Level::new("dear", Vec::new()) }
}

async fn come(room: &Arc<Room>, level: &Level, max: usize) -> Result<Seat, Refusal> {
    let server = Server { max_turns: max, ..Server::default() };
    enter(room, &server, level, Duration::from_secs(300), &CancellationToken::new()).await
}

#[tokio::test(start_paused = true)]
async fn dear_levels_are_refused_first_and_each_refusal_says_which() {
    let room = Arc::<Room>::default();
    let (dear, cheap) = (level(Some(0.5), None), level(None, None));
    let mut seats = vec![come(&room, &dear, 4).await.ok().unwrap(), come(&room, &dear, 4).await.ok().unwrap()];
    let refusal = come(&room, &dear, 4).await.err().unwrap();
    assert_eq!((&*refusal.code, refusal.reason.status()), ("shed", 503));
    assert!(refusal.message.contains("`dear`") && refusal.retry_after.is_some(), "{refusal:?}");
    seats.push(come(&room, &cheap, 4).await.ok().unwrap());
    seats.push(come(&room, &cheap, 4).await.ok().unwrap());
    assert_eq!(come(&room, &cheap, 4).await.err().unwrap().code, "full");
    assert_eq!(come(&room, &dear, 4).await.err().unwrap().code, "full");
    seats.clear();
    assert_eq!(room.open(), 0);
    assert!(come(&room, &dear, 4).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_level_that_queues_waits_and_is_told_when_it_was_in_vain() {
    let room = Arc::<Room>::default();
    let dear = level(Some(0.5), Some(60));
    let seat = come(&room, &dear, 2).await.ok().unwrap();
    let start = Instant::now();
    let refusal = come(&room, &dear, 2).await.err().unwrap();
    assert_eq!((&*refusal.code, start.elapsed()), ("queue_timeout", Duration::from_secs(60)));
    let server = Server { max_turns: 2, ..Server::default() };
    let none = CancellationToken::new();
    let start = Instant::now();
    let refusal = enter(&room, &server, &dear, Duration::from_secs(5), &none).await.err().unwrap();
    assert_eq!((&*refusal.code, start.elapsed()), ("queue_timeout", Duration::from_secs(5)), "the deadline is nearer");
    let later = async {
        sleep(Duration::from_secs(3)).await;
        drop(seat);
    };
    let start = Instant::now();
    let (came, ()) = tokio::join!(come(&room, &dear, 2), later);
    assert_eq!((came.is_ok(), start.elapsed()), (true, Duration::from_secs(3)));
    let seat = come(&room, &level(None, None), 2).await;
    none.cancel();
    assert_eq!(enter(&room, &server, &dear, Duration::from_secs(5), &none).await.err().unwrap().code, "draining");
    drop((came, seat));
    assert_eq!(room.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_let_in_in_order_and_those_who_left_hold_nothing() {
    let room = Arc::<Room>::default();
    let held = room.take(1).unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut waiting = Vec::new();
    for number in 0..5 {
        let (room, order) = (Arc::clone(&room), Arc::clone(&order));
        waiting.push(tokio::spawn(async move {
            let seat = room.wait(1).await.unwrap();
            order.lock().unwrap().push(number);
            sleep(Duration::from_millis(10)).await;
            drop(seat);
        }));
        tokio::task::yield_now().await;
    }
    waiting.remove(2).abort();
    tokio::task::yield_now().await;
    drop(held);
    for task in waiting {
        task.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [0, 1, 3, 4]);
    assert_eq!(room.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_low_bar_does_not_keep_back_a_high_one() {
    let room = Arc::<Room>::default();
    let seats = [room.take(3).unwrap(), room.take(3).unwrap(), room.take(3).unwrap()];
    let low = tokio::spawn({
        let room = Arc::clone(&room);
        async move { room.wait(1).await.map(drop) }
    });
    tokio::task::yield_now().await;
    let high = tokio::spawn({
        let room = Arc::clone(&room);
        async move { room.wait(3).await.map(std::mem::forget) }
    });
    tokio::task::yield_now().await;
    let [first, ..] = seats;
    drop(first);
    assert!(timeout(Duration::from_millis(1), high).await.unwrap().unwrap().is_ok());
    assert!(timeout(Duration::from_secs(60), low).await.is_err(), "two others are open");
}
