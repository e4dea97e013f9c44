//! Reading HTTP/1.1 requests.

use super::connection::Connection;
use bytes::BytesMut;

/// A request's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) method: String,
    /// Path and query.
    pub(super) path: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    /// The connection may be used again.
    pub(super) keep_alive: bool,
}

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) head: Head,
    pub(super) body: BytesMut,
}

/// A request that is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) status: u16,
    pub(super) message: &'static str,
}

/// Reads the next request; `None` if the peer leaves before it is whole.
///
/// # Errors
/// If it is none, or too large.
pub(super) async fn read(connection: &mut Connection) -> Result<Option<Request>, Refused> {
    let end = loop {
        if let Some(at) = find(&connection.inbox, b"\r\n\r\n") {
            break at;
        }
        if connection.inbox.len() > MAX_HEAD {
            return Err(Refused { status: 431, message: "The head is over 64 KiB.\n" });
        }
        if !connection.more().await {
            return Ok(None);
        }
    };
    let bytes = connection.inbox.split_to(end + 4);
    let head = parse(&bytes).ok_or(Refused { status: 400, message: "This is no HTTP/1.1 request.\n" })?;
    if header(&head.headers, "expect").is_some_and(|v| v.eq_ignore_ascii_case("100-continue"))
        && connection.write(b"HTTP/1.1 100 Continue\r\n\r\n").await.is_err()
    {
        return Ok(None);
    }
    let chunked = header(&head.headers, "transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked"));
    let body = if chunked {
        read_chunks(connection).await?
    } else {
        let length = match header(&head.headers, "content-length") {
            None => 0,
            Some(length) => length
                .parse::<usize>()
                .map_err(|_| Refused { status: 400, message: "content-length is no number.\n" })?,
        };
        take(connection, length, MAX_BODY).await?
    };
    Ok(body.map(|body| Request { head, body }))
}

/// The value of the header `name` (in lower case).
pub(super) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
}

// === helpers ===

fn parse(bytes: &[u8]) -> Option<Head> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path, version) = (first.next()?, first.next()?, first.next()?);
    let keeps = match version {
        "HTTP/1.1" => true,
        "HTTP/1.0" => false,
        _ => return None,
    };
    let mut headers = Vec::new();
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':')?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let keep_alive = keeps && !header(&headers, "connection").is_some_and(|v| v.eq_ignore_ascii_case("close"));
    Some(Head { method: method.to_owned(), path: path.to_owned(), headers, keep_alive })
}

async fn take(connection: &mut Connection, length: usize, most: usize) -> Result<Option<BytesMut>, Refused> {
    if length > most {
        return Err(TOO_LARGE);
    }
    while connection.inbox.len() < length {
        if !connection.more().await {
            return Ok(None);
        }
    }
    Ok(Some(connection.inbox.split_to(length)))
}

async fn read_chunks(connection: &mut Connection) -> Result<Option<BytesMut>, Refused> {
    let wrong = Refused { status: 400, message: "The body's chunks are broken.\n" };
    let mut body = BytesMut::new();
    loop {
        let Some(line) = read_line(connection).await? else { return Ok(None) };
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| wrong)?;
        if size == 0 {
            break;
        }
        let Some(chunk) = take(connection, size, MAX_BODY.saturating_sub(body.len())).await? else { return Ok(None) };
        body.extend_from_slice(&chunk);
        match read_line(connection).await? {
            Some(line) if line.is_empty() => {}
            Some(_) => return Err(wrong),
            None => return Ok(None),
        }
    }
    // Trailers, up to an empty line.
    loop {
        match read_line(connection).await? {
            Some(line) if line.is_empty() => return Ok(Some(body)),
            Some(_) => {}
            None => return Ok(None),
        }
    }
}

async fn read_line(connection: &mut Connection) -> Result<Option<String>, Refused> {
    loop {
        if let Some(at) = find(&connection.inbox, b"\r\n") {
            let line = connection.inbox.split_to(at + 2);
            return Ok(Some(String::from_utf8_lossy(&line[..at]).into_owned()));
        }
        if connection.inbox.len() > MAX_HEAD {
            return Err(TOO_LARGE);
        }
        if !connection.more().await {
            return Ok(None);
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, what)
}

// === consts ===

const TOO_LARGE: Refused = Refused { status: 413, message: "The body is over 64 MiB.\n" };

/// The most bytes of a head, and of a line.
const MAX_HEAD: usize = 64 << 10;

/// The most bytes of a body.
const MAX_BODY: usize = 64 << 20;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

    use super::{header, parse};

    #[test]
    fn heads_are_read() {
        let head = parse(b"POST /v1/x?y=1 HTTP/1.1\r\nHost: a\r\nX-Key:  v \r\n\r\n").unwrap();
        assert_eq!((head.method.as_str(), head.path.as_str(), head.keep_alive), ("POST", "/v1/x?y=1", true));
        assert_eq!(header(&head.headers, "x-key"), Some("v"));
        assert!(!parse(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap().keep_alive);
        assert!(!parse(b"GET / HTTP/1.0\r\n\r\n").unwrap().keep_alive);
        for wrong in
            [&b"GET /\r\n\r\n"[..], b"GET / HTTP/2\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"\xff\r\n\r\n"]
        {
            assert_eq!(parse(wrong), None);
        }
    }
}
