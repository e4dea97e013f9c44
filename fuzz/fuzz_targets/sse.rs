//! Any bytes, cut anywhere: the decoder does not panic, how they are cut changes nothing, and the cost is linear.
//!
//! `cargo +nightly fuzz run sse`
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use segue::sse::{Decoder, Event, Item, Overflow};

const LIMIT: usize = 256;

type Told = Result<(Vec<Item>, Option<Event>), Overflow>;

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Told {
    let mut decoder = Decoder::new(LIMIT);
    let mut items = Vec::new();
    let mut bytes = 0;
    for piece in pieces {
        bytes += piece.len() as u64;
        decoder.push(Bytes::copy_from_slice(piece));
        while let Some(item) = decoder.next()? {
            if let Item::Event(event) = &item {
                assert!(event.name.len() + event.data.len() <= LIMIT);
            }
            items.push(item);
        }
        assert!(decoder.work() <= 4 * bytes);
    }
    Ok((items, decoder.finish()))
}

fuzz_target!(|input: (Vec<u8>, u8)| {
    let (bytes, size) = input;
    let whole = read(std::iter::once(&bytes[..]));
    assert_eq!(read(bytes.chunks(usize::from(size).max(1))), whole);
    assert_eq!(read(bytes.chunks(1)), whole);
});
