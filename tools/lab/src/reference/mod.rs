//! Diagnosis of object references: what one says, and whether anybody answers.

pub mod dump;
mod locate;
pub mod ping;

pub use locate::{Located, Locator};
