//! What the client has been told.
pub mod resume;
mod script;
pub mod seam;
