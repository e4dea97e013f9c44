//! Reading requests: what one will take is known before it is built, and a large one is read by others than the runtime's
//! workers.

use super::buffer::Held;
use super::{Gateway, room};
use crate::dialect::{Reason, Refusal};
use crate::json;
use bytes::Bytes;

impl Gateway {
    /// Reads a request's body with `parse`. `held` has counted the body as it came, and counts the request afterwards.
    ///
    /// # Errors
    /// What `parse` says; a 413 if the request takes more memory than there is for all; a 503 if there is no room for it
    /// now.
    pub async fn read<T: Send + 'static>(
        &self,
        body: Bytes,
        mut held: Held,
        parse: impl FnOnce(&[u8]) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<(T, Held), Refusal> {
        let config = self.config();
        let (bounds, buffer) = (config.limits.bounds, config.server.buffer);
        let short = body.len() <= SHORT;
        let work = move || {
            // What holds too many things is not read, so it takes nothing; `parse` says so.
            if bounds.body(&body).is_ok() {
                // It is there twice, as it was sent and as it is understood, and once for each provider that is asked.
                let weight = 2 * (json::shape(&body).heap + body.len());
                held.add(weight.saturating_sub(held.bytes()), buffer)?;
            }
            Ok((parse(&body)?, held))
        };
        if short {
            return work();
        }
        let Some(result) = self.0.readers.run(work) else {
            return Err(room::busy("busy", "too many large requests are being read; ask again".to_owned()));
        };
        result.await.unwrap_or_else(|_| {
            Err(Refusal::new(Reason::Internal, "unreadable_request", "the request could not be read; that is a defect"))
        })
    }

    /// Holds no more than half of `memory` bytes for turns, whatever is configured; the first word holds.
    pub fn confine(&self, memory: usize) {
        self.0.buffer.confine(memory / 2);
    }

    /// How many bytes turns hold.
    pub fn held(&self) -> usize {
        self.0.buffer.held()
    }
}

/// A body of so many bytes is read at once: whatever it holds, it takes a few milliseconds.
const SHORT: usize = 128 << 10;
