//! Reads transport errors: what broke, how far the attempt had come, and whether anybody is to blame.

use super::dial::{TooSlow, Unresolved};
use crate::failure::{Failure, Kind, Stage};
use std::error::Error;
use std::io;

type Dyn = dyn Error + 'static;

/// The failure of an attempt that got no response. `connecting`: it had no connection yet.
pub(super) fn unanswered(error: &Dyn, connecting: bool) -> Failure {
    if is_ours(error) {
        let message = format!("{}; this gateway itself is short of it, not the provider", words(error));
        return Failure::new(Kind::Unavailable, Stage::Connecting).ours().saying(message);
    }
    let (kind, stage) = if !connecting {
        (Kind::Reset, Stage::Waiting)
    } else if find::<Unresolved>(error).is_some() {
        (Kind::Dns, Stage::Connecting)
    } else if find::<TooSlow>(error).is_none() && is_tls(error) {
        (Kind::Tls, Stage::Connecting)
    } else {
        (Kind::Connect, Stage::Connecting)
    };
    Failure::new(kind, stage).saying(words(error))
}

/// The failure of an attempt whose body broke off.
pub(super) fn broken(error: &Dyn) -> Failure {
    let garbled = find::<io::Error>(error)
        .is_some_and(|io| matches!(io.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput));
    let kind = if garbled { Kind::Framing } else { Kind::Reset };
    Failure::new(kind, Stage::Streaming).saying(words(error))
}

/// Whether the connection itself was gone before it carried any answer: on one that had been idle, the server had
/// closed it before it saw the request, or while.
pub(super) fn is_gone(error: &Dyn) -> bool {
    if find::<hyper::Error>(error).is_some_and(|e| e.is_incomplete_message() || e.is_canceled() || e.is_closed()) {
        return true;
    }
    find::<io::Error>(error).is_some_and(|io| {
        matches!(
            io.kind(),
            io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::NotConnected
                | io::ErrorKind::UnexpectedEof
        )
    })
}

/// Whether this process, or its machine, lacked what a connection needs: descriptors, memory, ports. That says nothing of
/// the provider.
fn is_ours(error: &Dyn) -> bool {
    let unresolved = find::<Unresolved>(error).and_then(|Unresolved(error)| error.raw_os_error());
    let mut next = Some(error);
    let mut codes = unresolved.into_iter().chain(std::iter::from_fn(move || {
        while let Some(error) = next {
            next = below(error);
            if let Some(code) = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
                return Some(code);
            }
        }
        None
    }));
    codes.any(|code| OURS.contains(&rustix::io::Errno::from_raw_os_error(code)))
}

/// A handshake that failed, or was broken off by the other side.
fn is_tls(error: &Dyn) -> bool {
    find::<rustls::Error>(error).is_some()
        || find::<io::Error>(error).is_some_and(|io| io.kind() == io::ErrorKind::UnexpectedEof)
}

/// The innermost cause, which says most and holds no URL.
pub(super) fn words(error: &Dyn) -> String {
    let mut error = error;
    while let Some(deeper) = below(error) {
        error = deeper;
    }
    error.to_string()
}

/// The first error of type `T` among `error` and its causes.
fn find<T: Error + 'static>(error: &Dyn) -> Option<&T> {
    let mut error = error;
    loop {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        error = below(error)?;
    }
}

/// The cause of `error`. An `io::Error` hides the one that it wraps: its `source` is that one's cause.
fn below(error: &Dyn) -> Option<&Dyn> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

/// What the system says where its caller has too much open, or the machine is full.
const OURS: [rustix::io::Errno; 5] = {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::ADDRNOTAVAIL]
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_cause_inside_an_io_error_is_found() {
        let error = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, rustls::Error::DecryptError));
        assert!(is_tls(&error));
        assert_eq!(unanswered(&error, true).kind, Kind::Tls);
        assert_eq!(unanswered(&error, false).kind, Kind::Reset, "past the handshake it is a broken connection");
    }

    #[test]
    fn what_this_machine_lacks_is_no_providers_failure() {
        for errno in OURS {
            let own = io::Error::from_raw_os_error(errno.raw_os_error());
            let copy = io::Error::from_raw_os_error(errno.raw_os_error());
            for error in [io::Error::other(own), io::Error::other(Unresolved(copy))] {
                let failure = unanswered(&error, true);
                assert_eq!((failure.kind, failure.source), (Kind::Unavailable, crate::failure::Source::Gateway));
                assert_eq!(failure.kind.verdict(), crate::failure::Verdict::Abandon);
                assert!(failure.said.message.contains("not the provider"), "{}", failure.said.message);
            }
        }
        let refused = io::Error::other(io::Error::from_raw_os_error(rustix::io::Errno::CONNREFUSED.raw_os_error()));
        assert_eq!(unanswered(&refused, true).kind, Kind::Connect);
    }

    #[test]
    fn what_keeps_an_attempt_from_connecting_is_told_apart() {
        let unresolved = io::Error::other(Unresolved(io::Error::other("no such host")));
        assert_eq!(unanswered(&unresolved, true).kind, Kind::Dns);
        let slow = io::Error::other(TooSlow(Duration::from_secs(2)));
        assert_eq!(unanswered(&slow, true).kind, Kind::Connect);
        assert_eq!(unanswered(&slow, true).said.message, "no connection within 2s");
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(unanswered(&refused, true).kind, Kind::Connect);
        assert!(!is_gone(&refused), "nobody listens: asking again at once would not help");
    }
}
