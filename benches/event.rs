//! What one event of a stream costs: reading a provider's chunk, writing a client's.

#![expect(clippy::expect_used, reason = "a bench's panic is its report")]

use bytes::{Bytes, BytesMut};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use http::HeaderMap;
use segue::chat::DialectId;
use segue::dialect::{self, Client, Expect, Provider};
use segue::event::{Event, Step};
use segue::sse;
use std::hint::black_box;

/// Events to a measurement.
const EVENTS: u64 = 256;

fn chunk(delta: &str) -> sse::Event {
    let data = format!(
        r#"{{"id":"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG","object":"chat.completion.chunk","created":1741570283,"model":"gpt-4.1-2025-04-14","service_tier":"default","system_fingerprint":"fp_b8bc95a0ac","choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":null}}],"usage":null,"obfuscation":"Yi7vm0Yq"}}"#
    );
    sse::Event { name: Bytes::new(), data: Bytes::from(data), single_line: true }
}

fn provider() -> &'static dyn Provider {
    dialect::provider(DialectId::Chat).expect("a dialect that is built")
}

fn client() -> &'static dyn Client {
    dialect::client(DialectId::Chat).expect("a dialect that clients speak")
}

fn decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("chat/decode");
    group.throughput(Throughput::Elements(EVENTS));
    let rows = [
        ("text", chunk(r#"{"content":" quick brown"}"#)),
        ("reasoning", chunk(r#"{"content":null,"reasoning_content":" quick brown"}"#)),
        ("tool_args", chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":"quick "}}]}"#)),
        ("surrogates", chunk(r#"{"content":"x\ud83d"}"#)),
    ];
    let open = chunk(r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\":\""}}]}"#);
    for (name, event) in rows {
        group.bench_function(name, |b| {
            b.iter_batched_ref(
                || {
                    let mut decoder = provider().decoder(Expect::of(1));
                    decoder.event(&open, &mut Step::default()).expect("a call");
                    decoder
                },
                |decoder| {
                    for _ in 0..EVENTS {
                        let mut step = Step::default();
                        decoder.event(black_box(&event), &mut step).expect("a chunk");
                        black_box(step);
                    }
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn encode(c: &mut Criterion) {
    let mut group = c.benchmark_group("chat/encode");
    group.throughput(Throughput::Elements(EVENTS));
    let body = br#"{"model":"m","stream":true,"messages":[{"role":"user","content":"go"}]}"#;
    let request = client().parse(&HeaderMap::new(), body).expect("a request");
    let mut decoder = provider().decoder(Expect::of(1));
    let (mut first, mut plain) = (Step::default(), Step::default());
    decoder.event(&chunk(r#"{"role":"assistant","content":"The"}"#), &mut first).expect("a chunk");
    decoder.event(&chunk(r#"{"content":" quick brown"}"#), &mut plain).expect("a chunk");
    let anew = Step { raw: None, ..plain.clone() };
    let args = Step::of(Event::ToolArgs { choice: 0, call: 0, args: "{\"quick\":".to_owned() });
    let open = Step::of(Event::ToolOpen { choice: 0, call: 0, id: "c".to_owned(), name: "f".to_owned() });
    for (name, step) in [("verbatim", plain), ("anew", anew), ("tool_args", args)] {
        group.bench_function(name, |b| {
            b.iter_batched_ref(
                || {
                    let mut encoder = client().encoder(&request);
                    let mut out = BytesMut::with_capacity(1 << 18);
                    encoder.step(&first, &mut out);
                    encoder.step(&open, &mut out);
                    (encoder, out)
                },
                |(encoder, out)| {
                    for _ in 0..EVENTS {
                        encoder.step(black_box(&step), out);
                    }
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, decode, encode);
criterion_main!(benches);
