//! File descriptors: as many as the system allows, and who may use them.

use crate::config::Server;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one: the default of many systems, 1024, is for programs that use `select`. Where the
/// system refuses, the old limit stays.
pub(super) fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Some systems have a bound below a hard limit that they call infinite.
        let bounds = [maximum, Some(FALLBACK)];
        let higher = |wanted: &Option<u64>| wanted.is_none_or(|wanted| current.is_some_and(|current| current < wanted));
        for wanted in bounds.into_iter().filter(higher) {
            if setrlimit(Resource::Nofile, Rlimit { current: wanted, maximum }).is_ok() {
                return;
            }
        }
    }
}

/// How many connections of clients may be open at once, by what the process may have open.
pub(super) fn for_clients() -> usize {
    share(getrlimit(Resource::Nofile).current)
}

/// Bounds open turns by what the process may have open: a client of HTTP/2 has many in one connection, and each has its
/// own to providers. Gives whether that is fewer than was configured.
pub(super) fn bound(server: &mut Server) -> bool {
    let most = for_clients();
    let fewer = most < server.max_turns;
    server.max_turns = server.max_turns.min(most);
    fewer
}

// === helpers ===

/// A turn has its client's connection and up to two to providers: a third of what is left after operators, files and
/// resolvers have theirs.
fn share(limit: Option<u64>) -> usize {
    let limit = limit.unwrap_or(u64::MAX);
    let kept = (limit / 2).min(KEPT);
    usize::try_from((limit - kept) / 3).unwrap_or(usize::MAX).clamp(1, MOST)
}

/// Kept back for operators, the log, the store, name servers and the like.
const KEPT: u64 = 128;
/// Asked for where the hard limit cannot be had.
const FALLBACK: u64 = 10_240;
/// More are in nobody's way, and a semaphore counts no further.
const MOST: usize = 1 << 24;

#[cfg(test)]
mod tests {
    use super::{MOST, share};

    #[test]
    fn clients_leave_room_for_providers_and_operators() {
        for (limit, clients) in [(Some(64), 10), (Some(128), 21), (Some(1024), 298), (Some(1 << 20), 349_482)] {
            assert_eq!(share(limit), clients, "{limit:?}");
        }
        assert_eq!((share(None), share(Some(0)), share(Some(3))), (MOST, 1, 1));
    }
}
