//! Arguments of tasks.

use std::num::ParseIntError;
use std::str::FromStr;

use anyhow::{Context, Result};

/// Parses a numeric argument, before anything is built.
pub fn number<N: FromStr<Err = ParseIntError>>(text: &str) -> Result<N> {
    text.parse().with_context(|| format!("`{text}` is not a valid number"))
}
