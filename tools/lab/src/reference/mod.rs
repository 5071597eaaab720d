//! Diagnosis of object references: their contents, and whether their objects answer.

pub mod dump;
mod locate;
pub mod ping;

pub use locate::{Located, Locator};
