//! Who is asked next.
