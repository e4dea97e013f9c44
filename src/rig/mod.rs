//! Faults as data: what a provider tells, how fast, how it breaks and how it goes on with a turn that another began.
//!
//! One [`script::Script`] runs in three places: as [`signals`] in virtual time, behind a gateway [`inside`] the process,
//! and as bytes over a loopback socket ([`origin`]). All are made from the same timeline ([`play`]), so that a property that holds in one million
//! simulated turns is tried on the same faults over a real connection. The bytes come from templates of this module
//! ([`wire`]); it never uses the product's own dialects, for two bugs that agree would cancel out.

pub mod delay;
pub mod faults;
pub mod inside;
pub mod mark;
pub mod mock;
pub mod names;
pub mod origin;
pub mod play;
pub mod random;
pub mod reading;
pub mod script;
pub mod seed;
pub mod signals;
pub mod sim;
pub mod span;
pub mod text;
pub mod wire;

#[cfg(test)]
mod tests;
