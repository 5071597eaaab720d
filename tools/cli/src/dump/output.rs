//! The output of messages, up to a limit.

use super::summary::MessageSummary;
use crate::common;

/// The output, and its limit.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) is_json: bool,
    /// The number of messages left until the limit.
    pub(super) left: u64,
}

/// The limit of messages is reached.
#[derive(Debug, thiserror::Error)]
#[error("the limit of --count is reached")]
pub(super) struct LimitReached;

impl Output {
    pub(super) fn begin(&mut self, number: usize, client: &str, server: &str) -> anyhow::Result<()> {
        if self.is_json {
            let line = serde_json::json!({ "connection": number, "client": client, "server": server });
            return common::print(&format!("{line}\n"));
        }
        common::print(&format!("#{number} {client} -> {server}\n"))
    }

    pub(super) fn print(&mut self, summary: &MessageSummary) -> anyhow::Result<()> {
        common::print(&if self.is_json { summary.json() } else { summary.text() })?;
        self.left -= 1;
        if self.left == 0 { Err(LimitReached.into()) } else { Ok(()) }
    }
}
