//! The latency experiment: how long one call takes, from its start to its answer.

mod times;

pub use times::CallTimes;
