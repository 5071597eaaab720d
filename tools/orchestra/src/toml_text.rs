//! Files in the language TOML: plans, and configurations of agents.

use anyhow::anyhow;
use serde::de::DeserializeOwned;

/// Parses a text.
///
/// # Errors
/// The line and the reason, without the picture of the line that the parser draws.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> anyhow::Result<T> {
    toml::from_str(text).map_err(|error| {
        let reason = error.message().trim().replace('\n', ", ");
        let place = error.span().and_then(|span| text.get(..span.start));
        match place {
            Some(before) => anyhow!("line {}: {reason}", before.matches('\n').count() + 1),
            None => anyhow!("{reason}"),
        }
    })
}
