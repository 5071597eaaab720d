//! Text in quotes, and integers as JSON.

use std::fmt;

/// The largest integer that every reader of JSON represents exactly (RFC 8259, clause 6).
const MAX_EXACT: u128 = (1 << 53) - 1;

/// An integer: in quotes beyond those that a double represents exactly.
pub(super) fn json_integer(value: i128, out: &mut dyn fmt::Write) -> fmt::Result {
    if value.unsigned_abs() <= MAX_EXACT { write!(out, "{value}") } else { write!(out, "\"{value}\"") }
}

/// Text in quotes, as in JSON.
pub(super) fn quoted(text: &str, out: &mut dyn fmt::Write) -> fmt::Result {
    out.write_str("\"")?;
    let mut rest = text;
    while let Some(position) = rest.find(|c: char| matches!(c, '"' | '\\') || c.is_control()) {
        out.write_str(&rest[..position])?;
        let character = rest[position..].chars().next().unwrap_or_default();
        match character {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            other => write!(out, "\\u{:04x}", u32::from(other))?,
        }
        rest = &rest[position + character.len_utf8()..];
    }
    out.write_str(rest)?;
    out.write_str("\"")
}

/// Puts a text in quotes and escapes it as a JSON string.
pub(crate) fn quoted_json(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    // A string takes every text.
    _ = quoted(text, &mut json);
    json
}
