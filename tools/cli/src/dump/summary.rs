//! The description of one message, and its output.

use std::{fmt::Write, time::Duration};

use spandrel::net::error::{escape, escape_lines};

use super::typed::Values;
use crate::json::{self, JsonObject};

/// The description of one message.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageSummary {
    /// The time of capture, since 1970.
    pub(super) time: Duration,
    /// The number of the connection, from one.
    pub(super) connection: usize,
    /// Sent by the side that opened the connection.
    pub(super) is_from_client: bool,
    /// Its message type, or the kind of another event.
    pub(super) kind: String,
    pub(super) version: Option<String>,
    pub(super) octets: usize,
    pub(super) request_id: Option<u32>,
    pub(super) operation: Option<String>,
    /// The reply status, or the response flags of a request.
    pub(super) status: Option<String>,
    /// The time since its request.
    pub(super) took: Option<Duration>,
    pub(super) interface: Option<String>,
    pub(super) target: Option<String>,
    pub(super) contexts: Vec<(String, String)>,
    pub(super) values: Values,
    /// Errors of decoding, and violations of the protocol.
    pub(super) notes: Vec<String>,
    /// A hex dump of the body, by lines.
    pub(super) hex: Vec<String>,
}

impl MessageSummary {
    /// A headline, followed by the contents. Control characters are escaped, so that the sender of a message
    /// cannot control the terminal.
    pub(super) fn text(&self) -> String {
        escape_lines(&self.lines()).into_owned()
    }

    fn lines(&self) -> String {
        let mut text = format!("{} #{} {} {}", clock(self.time), self.connection, self.arrow(), self.kind);
        let id = self.request_id.map(|id| id.to_string());
        let operation = self.operation.as_ref().map(|name| escape(name).to_string());
        let version = self.version.as_ref().map(|version| format!("({version}, {} octets)", self.octets));
        let took = self.took.map(|took| format!("after {took:?}"));
        for part in [id, operation, self.status.clone(), version, took].into_iter().flatten() {
            // Writing to a string does not fail.
            let _ = write!(text, " {part}");
        }
        text.push('\n');
        let parts = [("interface", &self.interface), ("to", &self.target)];
        for (name, part) in parts {
            if let Some(part) = part {
                let _ = writeln!(text, "    {name} {part}");
            }
        }
        for (name, contents) in &self.contexts {
            let _ = writeln!(text, "    context {name}: {contents}");
        }
        for (name, value) in &self.values {
            let _ = writeln!(text, "    {name}: {value}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "    ! {note}");
        }
        for line in &self.hex {
            let _ = writeln!(text, "    {line}");
        }
        text
    }

    /// The description as one JSON object in one line.
    pub(super) fn json(&self) -> String {
        let object = JsonObject::new()
            .value("time", self.time.as_secs_f64())
            .value("connection", self.connection)
            .value("from", if self.is_from_client { "client" } else { "server" })
            .value("message", self.kind.as_str())
            .optional("version", self.version.clone())
            .value("octets", self.octets)
            .optional("request_id", self.request_id)
            .optional("operation", self.operation.clone())
            .optional("status", self.status.clone())
            .optional("took", self.took.map(|took| took.as_secs_f64()))
            .optional("interface", self.interface.clone())
            .optional("target", self.target.clone());
        let contexts = self.contexts.iter().map(|(name, contents)| (name, json::text(contents)));
        let values = self.values.iter().map(|(name, value)| (name, value.json()));
        let object = with_members(object, "contexts", contexts);
        let object = with_members(object, "values", values);
        let lists = [("notes", &self.notes), ("hex", &self.hex)];
        let lists = lists.into_iter().filter(|(_, lines)| !lines.is_empty());
        let object = lists.fold(object, |object, (name, lines)| object.value(name, lines.clone()));
        format!("{}\n", object.finish())
    }

    fn arrow(&self) -> &'static str {
        if self.is_from_client { "->" } else { "<-" }
    }
}

/// Adds an object of these members, unless there are none.
fn with_members<'m>(object: JsonObject, name: &str, members: impl Iterator<Item = (&'m String, String)>) -> JsonObject {
    let mut members = members.peekable();
    if members.peek().is_none() {
        return object;
    }
    let inner = members.fold(JsonObject::new(), |inner, (name, json)| inner.json(name, &json));
    object.json(name, &inner.finish())
}

/// The time of day, in UTC.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs() % 86_400;
    format!("{:02}:{:02}:{:02}.{:06}", seconds / 3600, seconds / 60 % 60, seconds % 60, time.subsec_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_peers_are_escaped() {
        let values = vec![("text".to_owned(), "a\u{1b}[2J\u{9b}b\r".to_owned().into())];
        let notes = vec!["ends in \u{7}".to_owned()];
        let operation = Some("op\u{1b}\n".to_owned());
        let summary =
            MessageSummary { kind: "Request".to_owned(), operation, values, notes, ..MessageSummary::default() };
        let text = summary.text();
        assert!(text.lines().next().unwrap().ends_with(" Request op\\u001b\\n"), "{text}");
        assert!(text.ends_with("    text: a\\u001b[2J\\u009bb\\r\n    ! ends in \\u0007\n"), "{text}");
    }
}
