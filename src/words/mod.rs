//! Words that others wrote, on their way to people.
//!
//! A provider, a client or a page may write anything: line ends that forge a line of a log, controls that rule a
//! terminal, marks that turn text around, and the very secrets that were sent. [`escape`] makes text that is safe to
//! show; [`redact`] takes the configured secrets out of it, in whatever encoding they stand there. Both cost what the
//! text's bytes cost.

pub mod escape;
pub mod redact;
