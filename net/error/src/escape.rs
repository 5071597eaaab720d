//! Texts that others wrote: peers, files, plug-ins.
//!
//! Such a text may have characters that change a terminal, or that make one line of a log look like two. Everything that shows
//! it to people or writes it into a log does so in the form of [`escape`]: in errors and exceptions where the text enters the
//! message, at the latest in the output of a program ([`escape_lines`]).

use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// The number of characters of an [`excerpt`].
const MAX_EXCERPT: usize = 256;

/// A text in one line, without characters that have an effect instead of a form.
///
/// Those are the control characters of ASCII and ISO 8859-1 (C0, DEL, C1), separators of lines and paragraphs, and characters
/// that change the direction of writing. They are written as JSON escapes them: `\n`, `\r`, `\t`, `\u001b`. A backslash stays,
/// so that paths of Windows can be read.
///
/// ```
/// assert_eq!(spandrel_error::escape("a\u{1b}[2J\nb\u{9b}").to_string(), r"a\u001b[2J\nb\u009b");
/// assert_eq!(spandrel_error::escape("Grüße").at_most(2).to_string(), "Gr…");
/// ```
#[must_use]
pub fn escape(text: &str) -> Escaped<'_> {
    Escaped { text, limit: usize::MAX }
}

/// As [`escape`], for messages: at most 256 characters, then `…`.
#[must_use]
pub fn excerpt(text: &str) -> Escaped<'_> {
    escape(text).at_most(MAX_EXCERPT)
}

/// A text for an output of several lines: as [`escape`], but line feeds and tabs stay. JSON stays the same JSON.
#[must_use]
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    let is_harmless = |character: char| matches!(character, '\n' | '\t') || !has_effect(character);
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_harmless(character) {
            escaped.push(character);
        } else {
            // A string takes every text.
            _ = write_escaped(character, &mut escaped);
        }
    }
    Cow::Owned(escaped)
}

/// A text in the form of [`escape`], for formatting.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a> {
    text: &'a str,
    limit: usize,
}

impl Escaped<'_> {
    /// At most that many characters, with those of escapes, and then `…` if that is not all.
    #[must_use]
    pub fn at_most(self, characters: usize) -> Self {
        Self { limit: characters, ..self }
    }
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.limit;
        for character in self.text.chars() {
            let width = match character {
                '\n' | '\r' | '\t' => 2,
                other if has_effect(other) => 6,
                _ => 1,
            };
            let Some(rest) = left.checked_sub(width) else { return f.write_char('…') };
            left = rest;
            if width == 1 { f.write_char(character)? } else { write_escaped(character, f)? }
        }
        Ok(())
    }
}

/// Whether a character does something instead of being shown.
fn has_effect(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
        )
}

fn write_escaped(character: char, out: &mut dyn fmt::Write) -> fmt::Result {
    match character {
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        // All that have an effect are below U+10000.
        other => write!(out, "\\u{:04x}", u32::from(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_with_an_effect_are_escaped() {
        assert_eq!(escape("a\0\t\r\n\u{1b}\u{7f}\u{85}\u{9b}").to_string(), r"a\u0000\t\r\n\u001b\u007f\u0085\u009b");
        assert_eq!(escape("\u{202e}\u{2066}\u{2028}\u{feff}").to_string(), r"\u202e\u2066\u2028\ufeff");
        for plain in ["", r"C:\names", "Łukasz", "東京", "\u{1f980}", "\u{a0}"] {
            assert_eq!(escape(plain).to_string(), plain);
            assert_eq!(escape_lines(plain), plain);
        }
        let json = "{\n\t\"a\": \"\u{9b}\u{7f}\"\n}\n";
        assert_eq!(escape_lines(json), "{\n\t\"a\": \"\\u009b\\u007f\"\n}\n");
        assert_eq!(escape_lines("a\r\u{1b}"), r"a\r\u001b");
    }

    #[test]
    fn an_excerpt_is_bounded() {
        assert_eq!(excerpt(&"ä".repeat(MAX_EXCERPT)).to_string(), "ä".repeat(MAX_EXCERPT));
        assert_eq!(excerpt(&"ä".repeat(MAX_EXCERPT + 1)).to_string(), format!("{}…", "ä".repeat(MAX_EXCERPT)));
        let long = excerpt(&"\u{9b}".repeat(MAX_EXCERPT)).to_string();
        assert_eq!(long, format!("{}…", r"\u009b".repeat(MAX_EXCERPT / 6)));
        for once in [long, excerpt(&"\n".repeat(1_000)).to_string(), excerpt(&"x".repeat(1_000)).to_string()] {
            assert_eq!(excerpt(&once).to_string(), once, "what is escaped stays as it is");
        }
    }
}
