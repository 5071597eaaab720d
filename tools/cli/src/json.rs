//! JSON of commands: objects with members in order, of which some are JSON already.

use std::error::Error;

use spandrel::SystemException;
use spandrel::dynamic::system_exception_json;

/// An object in JSON.
#[derive(Debug, Default)]
pub(crate) struct JsonObject(String);

impl JsonObject {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a member that is JSON already.
    pub(crate) fn json(mut self, name: &str, json: &str) -> Self {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&text(name));
        self.0.push(':');
        self.0.push_str(json);
        self
    }

    /// Adds a member with a value of the program.
    pub(crate) fn value(self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        self.json(name, &value.into().to_string())
    }

    /// Adds a member, unless there is no value.
    pub(crate) fn optional(self, name: &str, value: Option<impl Into<serde_json::Value>>) -> Self {
        match value {
            Some(value) => self.value(name, value),
            None => self,
        }
    }

    /// The object in one line.
    pub(crate) fn finish(mut self) -> String {
        self.0.push_str(if self.0.is_empty() { "{}" } else { "}" });
        self.0
    }
}

/// An array of elements in JSON.
pub(crate) fn array(elements: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", elements.into_iter().collect::<Vec<_>>().join(","))
}

/// A string in JSON.
pub(crate) fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The outcome of a command that failed: the error, its causes, and the exception if one is among them.
pub(crate) fn failure(error: &anyhow::Error) -> String {
    let causes = error.chain().skip(1).map(|cause| text(&cause.to_string()));
    let object = JsonObject::new().value("error", error.to_string()).json("causes", &array(causes));
    let exception = error.chain().find_map(|cause: &(dyn Error + 'static)| cause.downcast_ref::<SystemException>());
    match exception {
        Some(exception) => object.json("system_exception", &system_exception_json(exception)).finish(),
        None => object.finish(),
    }
}
