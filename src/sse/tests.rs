//! What is read of events, however their bytes are cut; another parser is the oracle.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]

use super::*;
use eventsource_stream::Eventsource;
use futures::{FutureExt, StreamExt};
use proptest::prelude::*;

const LIMIT: usize = 1 << 20;

/// What came out of a stream: the items, then what `finish` gave.
type Told = (Vec<Item>, Option<Event>);

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Told {
    let mut decoder = Decoder::new(LIMIT);
    let mut items = Vec::new();
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece));
        while let Some(item) = decoder.next().unwrap() {
            items.push(item);
        }
    }
    (items, decoder.finish())
}

fn event(name: &str, data: &str) -> Item {
    Item::Event(Event {
        name: Bytes::copy_from_slice(name.as_bytes()),
        data: Bytes::copy_from_slice(data.as_bytes()),
        single_line: !data.contains('\n'),
    })
}

fn last(name: &str, data: &str) -> Option<Event> {
    match event(name, data) {
        Item::Event(event) => Some(event),
        Item::Comment => None,
    }
}

#[test]
fn reads_what_the_standard_says() {
    let rows: &[(&str, Vec<Item>, Option<Event>)] = &[
        ("", vec![], None),
        ("data: a\n\n", vec![event("", "a")], None),
        ("data: a\r\n\r\n", vec![event("", "a")], None),
        ("data: a\r\r", vec![event("", "a")], None),
        ("data: a\r\n\n", vec![event("", "a")], None),
        ("data: a\n\r\n", vec![event("", "a")], None),
        ("data: a\n\rdata: b\n\n", vec![event("", "a"), event("", "b")], None),
        ("\u{feff}data: a\n\n", vec![event("", "a")], None),
        ("\u{feff}\u{feff}data: a\n\n", vec![], None),
        ("data: a\n\n\u{feff}data: b\n\n", vec![event("", "a")], None),
        ("\u{feff}\n\u{feff}data: b\n\n", vec![], None),
        ("data:a\n\n", vec![event("", "a")], None),
        ("data:  a\n\n", vec![event("", " a")], None),
        ("data:\ta\n\n", vec![event("", "\ta")], None),
        ("data : a\n\n", vec![], None),
        (" data: a\n\n", vec![], None),
        ("Data: a\n\n", vec![], None),
        ("datax: a\n\n", vec![], None),
        ("data: a\ndata: b\n\n", vec![event("", "a\nb")], None),
        ("data: a\ndata: b\ndata:\ndata: c\n\n", vec![event("", "a\nb\n\nc")], None),
        ("data\ndata\n\n", vec![event("", "\n")], None),
        ("data:\n\n", vec![event("", "")], None),
        ("data\n\n", vec![event("", "")], None),
        ("data: \n\n", vec![event("", "")], None),
        ("event: x\ndata: a\n\ndata: b\n\n", vec![event("x", "a"), event("", "b")], None),
        ("data: a\nevent: x\nevent: y\n\n", vec![event("y", "a")], None),
        ("event: x\nevent:\ndata: a\n\n", vec![event("", "a")], None),
        ("event: x\n\ndata: a\n\n", vec![event("", "a")], None),
        ("event: ping\n\n", vec![], None),
        ("id: 7\nretry: 10\nfoo: bar\nbar\ndata: a\n\n", vec![event("", "a")], None),
        (": hello\n\n", vec![Item::Comment], None),
        (":\n:\n\n", vec![Item::Comment, Item::Comment], None),
        ("data: a\n: in between\ndata: b\n\n", vec![Item::Comment, event("", "a\nb")], None),
        ("data: : keepalive\n\n", vec![event("", ": keepalive")], None),
        (
            "data: a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\n\n",
            vec![event("", "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f")],
            None,
        ),
        ("data: a:b: c\n\n", vec![event("", "a:b: c")], None),
        ("\n\n\r\n\r\rdata: a\n\n\n\n", vec![event("", "a")], None),
        ("data: [DONE]", vec![], last("", "[DONE]")),
        ("data: [DONE]\n", vec![], last("", "[DONE]")),
        ("data: [DONE]\r", vec![], last("", "[DONE]")),
        ("event: e\ndata: a\ndata: b", vec![], last("e", "a\nb")),
        ("\u{feff}data: a", vec![], last("", "a")),
        ("data: a\n\nda", vec![event("", "a")], None),
        ("data: a\n\ndata", vec![event("", "a")], last("", "")),
        ("data: a\n\nevent: x\n", vec![event("", "a")], None),
        ("data: a\n\n: bye", vec![event("", "a")], None),
    ];
    for (text, items, end) in rows {
        assert_eq!(read([text.as_bytes()]), (items.clone(), end.clone()), "{text:?}");
        // One byte at a time, and cut in two at every place.
        assert_eq!(read(text.as_bytes().chunks(1)), (items.clone(), end.clone()), "{text:?} byte by byte");
        for cut in 0..=text.len() {
            let (left, right) = text.as_bytes().split_at(cut);
            assert_eq!(read([left, right]), (items.clone(), end.clone()), "{text:?} cut at {cut}");
        }
    }
}

#[test]
fn keeps_bytes_that_are_not_utf8() {
    let (items, end) = read([&b"data: a\xff\xc3\x28\xe2\x82\n\nevent: \xfe\ndata\n\n"[..]]);
    let whole = |name: &'static [u8], data: &'static [u8]| {
        Item::Event(Event { name: Bytes::from_static(name), data: Bytes::from_static(data), single_line: true })
    };
    assert_eq!(items, [whole(b"", b"a\xff\xc3\x28\xe2\x82"), whole(b"\xfe", b"")]);
    assert_eq!(end, None);
}

/// Streams as providers send them.
const GOLDEN: &[&str] = &[
    "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n\
     : OPENROUTER PROCESSING\n\n\
     data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Grüße, 世界 👩‍👩‍👧\"}}]}\n\n\
     data: {\"choices\":[],\"usage\":{\"total_tokens\":7}}\n\ndata: [DONE]\n\n",
    "event: message_start\r\ndata: {\"type\":\"message_start\"}\r\n\r\n\
     event: ping\r\ndata: {\"type\": \"ping\"}\r\n\r\n\
     event: content_block_delta\r\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"a\u{2028}b\"}}\r\n\r\n\
     event: message_stop\r\ndata: {\"type\":\"message_stop\"}\r\n\r\n",
    "\u{feff}data:{\r\rdata:}\n\ndata: {\ndata:   \"pretty\": [\ndata:   ]\ndata: }\n\nid: 4\nretry: 3000\n:\n\ndata: end",
];

#[test]
fn a_stream_cut_anywhere_gives_the_same_items() {
    for text in GOLDEN {
        let bytes = text.as_bytes();
        let whole = read([bytes]);
        assert!(whole.0.len() >= 3, "{text:?}");
        for one in 0..=bytes.len() {
            for two in (one..=bytes.len()).step_by(7) {
                let pieces = [&bytes[..one], &bytes[one..two], &bytes[two..]];
                assert_eq!(read(pieces), whole, "cut at {one} and {two}");
            }
        }
    }
}

#[test]
fn an_event_within_one_piece_is_not_copied() {
    let piece = Bytes::from_static(b"event: delta\ndata: {\"text\":\"hello\"}\n\n");
    let mut decoder = Decoder::new(LIMIT);
    decoder.push(piece.clone());
    let Some(Item::Event(event)) = decoder.next().unwrap() else { panic!("no event") };
    let inside = piece.as_ptr_range();
    assert!(inside.contains(&event.data.as_ptr()) && inside.contains(&event.name.as_ptr()));
    assert_eq!(decoder.work(), piece.len() as u64, "each byte is looked at once, none is copied");
}

#[test]
fn a_piece_that_was_not_read_is_not_lost() {
    let mut decoder = Decoder::new(LIMIT);
    decoder.push(Bytes::from_static(b"data: a\n\ndata: "));
    decoder.push(Bytes::from_static(b"b\n\n"));
    assert_eq!(decoder.next(), Ok(Some(event("", "a"))));
    assert_eq!(decoder.next(), Ok(Some(event("", "b"))));
    assert_eq!(decoder.next(), Ok(None));
}

/// Where a decoder with this limit gives up, as the number of bytes it had been given.
fn overflows(limit: usize, text: &[u8], size: usize) -> Option<usize> {
    let mut decoder = Decoder::new(limit);
    let mut given = 0;
    for piece in text.chunks(size) {
        decoder.push(Bytes::copy_from_slice(piece));
        given += piece.len();
        loop {
            match decoder.next() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(overflow) => {
                    assert_eq!(overflow, Overflow { limit });
                    return Some(given);
                }
            }
        }
    }
    None
}

#[test]
fn an_event_over_the_limit_is_refused_however_it_comes() {
    let line = |len: usize| format!("data: {}\n\n", "x".repeat(len)).into_bytes();
    for size in [1, 7, 4096] {
        assert_eq!(overflows(100, &line(94), size), None, "a line of exactly the limit, in pieces of {size}");
        assert!(overflows(100, &line(95), size).is_some(), "a line over the limit, in pieces of {size}");
    }
    // Many small events of the same stream are no large event.
    assert_eq!(overflows(100, &line(50).repeat(1000), 1460), None);
    // Nor are many comments or fields that are not kept.
    assert_eq!(overflows(100, &b": hello\nfoo: bar\n".repeat(1000), 1460), None);
}

#[test]
fn what_never_ends_is_refused_in_time() {
    let limit = 10_000;
    for text in [
        b"x".repeat(100_000),
        b": a comment without end ".repeat(10_000),
        b"data: one of many\n".repeat(10_000),
        [&b"event: "[..], &b"x".repeat(100_000)].concat(),
    ] {
        let given = overflows(limit, &text, 1460).unwrap();
        // What counts is what is kept: of the many lines, 12 bytes of 18.
        assert!(given <= limit * 18 / 12 + 2 * 1460, "gave up only after {given} bytes");
    }
}

#[test]
fn the_cost_is_linear() {
    let cost = |bytes: usize, size: usize| {
        let text = [&b"data: "[..], &b"x".repeat(bytes), b"\n\n"].concat();
        let mut decoder = Decoder::new(usize::MAX);
        for piece in text.chunks(size) {
            decoder.push(Bytes::copy_from_slice(piece));
            while decoder.next().unwrap().is_some() {}
        }
        decoder.work()
    };
    for size in [1, 1460, 65_536] {
        for bytes in [1 << 16, 1 << 20, 1 << 22] {
            let work = cost(bytes, size);
            assert!(work <= 2 * (bytes as u64 + 64), "{bytes} bytes in pieces of {size} cost {work}");
        }
    }
    // Many lines of one event are joined, not joined again with each line.
    let lines = b"data: a line of the event\n".repeat(40_000);
    let mut decoder = Decoder::new(usize::MAX);
    for piece in lines.chunks(1460) {
        decoder.push(Bytes::copy_from_slice(piece));
        while decoder.next().unwrap().is_some() {}
    }
    assert!(decoder.work() <= 3 * lines.len() as u64);
}

/// A line of a valid stream without its end.
fn line() -> impl Strategy<Value = String> {
    let value = "[ -~äß世\u{2028}👩\u{200d}]{0,12}";
    prop_oneof![
        4 => value.prop_map(|v| format!("data: {v}")),
        2 => value.prop_map(|v| format!("data:{v}")),
        1 => Just("data".to_owned()),
        2 => "[a-z_.]{0,8}".prop_map(|v| format!("event: {v}")),
        1 => "[0-9a-z]{0,4}".prop_map(|v| format!("id: {v}")),
        1 => "[0-9]{0,4}".prop_map(|v| format!("retry: {v}")),
        1 => value.prop_map(|v| format!(":{v}")),
        1 => value.prop_map(|v| format!("x-field: {v}")),
        3 => Just(String::new()),
    ]
}

/// A stream that ends with a blank line, in any mixture of line ends, and places to cut it.
fn stream() -> impl Strategy<Value = (Vec<u8>, Vec<usize>)> {
    let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
    let lines = prop::collection::vec((line(), end), 0..24);
    (any::<bool>(), lines, prop::collection::vec(any::<prop::sample::Index>(), 0..12)).prop_map(
        |(mark, lines, cuts)| {
            let mut text = if mark { "\u{feff}".to_owned() } else { String::new() };
            for (line, end) in lines {
                text.push_str(&line);
                text.push_str(end);
            }
            text.push_str("\n\n");
            let bytes = text.into_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
            cuts.sort_unstable();
            (bytes, cuts)
        },
    )
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut from = 0;
    let mut pieces = Vec::new();
    for &cut in cuts.iter().chain([&bytes.len()]) {
        if cut > from {
            pieces.push(&bytes[from..cut]);
            from = cut;
        }
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Another implementation reads the same events. It hides comments, gives the type `message` where none was
    /// given, and panics on a byte order mark (0.2.3), so it does not get to see one.
    #[test]
    fn reads_what_eventsource_stream_reads((bytes, cuts) in stream()) {
        let pieces = pieces(&bytes, &cuts);
        let (items, end) = read(pieces.iter().copied());
        prop_assert_eq!(end, None);
        let ours: Vec<(String, String)> = items
            .into_iter()
            .filter_map(|item| match item {
                Item::Event(event) => Some(event),
                Item::Comment => None,
            })
            .map(|event| {
                let name = if event.name.is_empty() { b"message"[..].into() } else { event.name };
                (String::from_utf8(name.to_vec()).unwrap(), String::from_utf8(event.data.to_vec()).unwrap())
            })
            .collect();
        let theirs = bytes.strip_prefix(MARK).unwrap_or(&bytes);
        let cuts: Vec<usize> = cuts.iter().map(|cut| cut.saturating_sub(bytes.len() - theirs.len())).collect();
        let theirs = self::pieces(theirs, &cuts);
        let body = futures::stream::iter(theirs.into_iter().map(|piece| Ok::<_, std::io::Error>(piece.to_vec())));
        let theirs: Vec<(String, String)> = body.eventsource().map(|event| {
            let event = event.unwrap();
            (event.event, event.data)
        }).collect::<Vec<_>>().now_or_never().unwrap();
        let full = |events: Vec<(String, String)>| -> Vec<_> {
            events.into_iter().filter(|(_, data)| !data.is_empty()).collect()
        };
        prop_assert_eq!(full(ours), full(theirs));
    }

    #[test]
    fn how_it_is_cut_changes_nothing((bytes, cuts) in stream()) {
        prop_assert_eq!(read(pieces(&bytes, &cuts)), read([&bytes[..]]));
    }

    /// Whatever comes, it is read or refused, and what is kept stays within the limit and a piece.
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(prop_oneof![
        4 => prop::sample::select(&b"data: event:\r\n\n\r :"[..]), 1 => any::<u8>()
    ], 0..400), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.sort_unstable();
        let whole = overflows(64, &bytes, 1000).is_some();
        prop_assert_eq!(overflows(64, &bytes, 3).is_some(), whole);
        prop_assert_eq!(read(pieces(&bytes, &places)), read([&bytes[..]]));
    }
}
