//! Measuring: what failover costs, in virtual time or over sockets, with its statistics, tables and plots.
//!
//! `world` lets many simulated turns share circuits, budgets and learned latencies, as they do in a gateway; `failover`
//! is the experiment on it, `failover_real` the same over sockets and `listener` its ear, `incident` a long bad day;
//! `continuity` what is left of a conversation. `probe` measures the targets of a configuration as they are, `eval` how
//! good their answers are. `stats`, `table`, `plot` and `machine` turn samples into what people read.

pub mod continuity;
mod endpoint;
pub mod eval;
pub mod failover;
pub mod failover_real;
pub mod incident;
pub mod listener;
pub mod machine;
pub mod plot;
pub mod probe;
pub mod stats;
pub mod table;
pub mod world;
