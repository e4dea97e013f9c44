//! What the client has been told.
pub mod resume;
pub mod seam;
