//! Bodies of requests as they were meant: decompressed within a bound, and without the mark that some clients put first.

use crate::dialect::{Reason, Refusal};
use crate::gateway::buffer::Held;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use std::io::Read;

/// The code of a refusal whose status is 415.
pub(super) const UNSUPPORTED: &str = "unsupported_encoding";

/// The text that `body` holds, at most `limit` bytes of it, of which all bodies together may have `buffer`. However little
/// was sent, no more is ever unpacked, and no worker is kept busy by it: it pauses after each piece.
///
/// # Errors
/// For an encoding that is not read, for one that is broken, and for what is too large.
pub(super) async fn decode(
    headers: &HeaderMap,
    body: Bytes,
    (limit, buffer): (usize, usize),
    held: &mut Held,
) -> Result<Bytes, Refusal> {
    let mut body = body;
    // The last one was applied last.
    let named = headers.get_all(header::CONTENT_ENCODING).iter().map(|value| value.to_str().unwrap_or("?"));
    let codings: Vec<String> =
        named.flat_map(|value| value.split(',')).map(|c| c.trim().to_ascii_lowercase()).collect();
    let codings: Vec<&str> = codings.iter().map(String::as_str).filter(|c| !matches!(*c, "" | "identity")).collect();
    for (at, coding) in codings.iter().rev().enumerate() {
        if at == MOST_CODINGS {
            return Err(unsupported(&codings.join(", ")));
        }
        body = match *coding {
            "gzip" | "x-gzip" => unpack(flate2::read::MultiGzDecoder::new(&*body), (limit, buffer), held).await?,
            "zstd" => {
                let broken = |error: ruzstd::decoding::errors::FrameDecoderError| unreadable(&error);
                let decoder = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(&*body, WINDOW);
                let decoder = decoder.map_err(broken)?;
                unpack(decoder, (limit, buffer), held).await?
            }
            _ => return Err(unsupported(coding)),
        };
    }
    Ok(match body.strip_prefix(MARK) {
        Some(rest) => body.slice_ref(rest),
        None => body,
    })
}

async fn unpack(
    mut packed: impl Read + Send,
    (limit, buffer): (usize, usize),
    held: &mut Held,
) -> Result<Bytes, Refusal> {
    let mut whole = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        let count = packed.read(&mut piece).map_err(|error| unreadable(&error))?;
        if count == 0 {
            return Ok(whole.into());
        }
        if whole.len() + count > limit {
            let message = format!(
                "the request body is larger than {limit} bytes once it is unpacked (server.max_body); shorten it or raise \
                 the limit"
            );
            return Err(Refusal::new(Reason::TooLarge, "request_too_large", message));
        }
        held.add(count, buffer)?;
        whole.extend_from_slice(&piece[..count]);
        tokio::task::yield_now().await;
    }
}

fn unreadable(why: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(Reason::Request, "unreadable_body", format!("the request body could not be unpacked: {why}"))
}

fn unsupported(coding: &str) -> Refusal {
    let shown: String = coding.chars().take(40).collect();
    let message = format!("a body in the encoding `{shown}` is not read; send it as it is, or as gzip or zstd");
    Refusal::new(Reason::Request, UNSUPPORTED, message)
}

/// So much is unpacked before others have their turn.
const PIECE: usize = 64 * 1024;
/// What a body may ask to be kept of what was unpacked already: what every reader of zstd is asked to allow.
const WINDOW: u64 = 8 << 20;
/// More encodings around one body are somebody's joke.
const MOST_CODINGS: usize = 2;
/// The UTF-8 byte order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use std::io::Write;
    use std::sync::Arc;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    async fn read(coding: &'static str, body: Vec<u8>, limits: (usize, usize)) -> Result<Bytes, Refusal> {
        let headers = HeaderMap::from_iter([(header::CONTENT_ENCODING, header::HeaderValue::from_static(coding))]);
        decode(&headers, body.into(), limits, &mut Held::of(&Arc::default())).await
    }

    #[tokio::test]
    async fn bodies_are_read_as_they_were_meant() {
        let zstd = |bytes: &[u8]| ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest);
        let twice = gzip(&gzip(b"{}"));
        for (coding, body) in [
            ("identity", b"{}".to_vec()),
            ("", b"\xef\xbb\xbf{}".to_vec()),
            ("gzip", gzip(b"{}")),
            ("GZIP", gzip(b"\xef\xbb\xbf{}")),
            ("gzip", [gzip(b"{"), gzip(b"}")].concat()),
            ("gzip, gzip", twice),
            ("zstd", zstd(b"{}")),
        ] {
            assert_eq!(read(coding, body, (100, 100)).await.unwrap(), "{}", "{coding}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_refused_in_words() {
        for (coding, body, code) in [
            ("br", b"x".to_vec(), UNSUPPORTED),
            ("gzip, gzip, gzip", gzip(b"{}"), "unreadable_body"),
            ("gzip", b"{}".to_vec(), "unreadable_body"),
            ("gzip", gzip(b"{}")[..12].to_vec(), "unreadable_body"),
            ("zstd", b"{}".to_vec(), "unreadable_body"),
        ] {
            assert_eq!(read(coding, body, (100, 100)).await.unwrap_err().code, code, "{coding}");
        }
    }

    #[tokio::test]
    async fn a_small_body_is_never_unpacked_into_a_huge_one() {
        let bomb = gzip(&vec![b' '; 16 << 20]);
        assert!(bomb.len() < 32 << 10);
        let mut ours = Held::of(&Arc::default());
        let headers = HeaderMap::from_iter([(header::CONTENT_ENCODING, header::HeaderValue::from_static("gzip"))]);
        let refusal = decode(&headers, bomb.clone().into(), (1 << 20, 1 << 30), &mut ours).await.unwrap_err();
        assert_eq!((refusal.reason.status(), &*refusal.code), (413, "request_too_large"));
        assert!(ours.bytes() <= 1 << 20);
        let refusal = read("gzip", bomb, (32 << 20, 1 << 20)).await.unwrap_err();
        assert_eq!(refusal.code, "request_too_large", "what all bodies may have holds for what they hold unpacked");
    }
}
