//! Diagnosis of object references: their contents, and whether their objects answer.

pub mod dump;
pub mod json;
pub mod ping;
pub mod security;
