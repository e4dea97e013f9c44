//! Errors for clients of this API.

pub(super) use crate::dialect::openai::{body, field, reply};
