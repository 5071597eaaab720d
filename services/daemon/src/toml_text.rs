//! Files in the language TOML.

use anyhow::anyhow;
use serde::de::DeserializeOwned;

/// Parses TOML, as configuration files have it.
///
/// # Errors
/// A text of another form: the line and the reason, in one line, without the picture of the line that the parser draws.
pub fn parse_toml<T: DeserializeOwned>(text: &str) -> anyhow::Result<T> {
    toml::from_str(text).map_err(|error| {
        let reason = error.message().trim().replace('\n', ", ");
        let text_before = error.span().and_then(|span| text.get(..span.start));
        match text_before {
            Some(before) => anyhow!("line {}: {reason}", before.matches('\n').count() + 1),
            None => anyhow!("{reason}"),
        }
    })
}
