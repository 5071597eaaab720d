//! Prometheus' text exposition format 0.0.4: families of series, each with a line of help, its type, and a line per series.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>

use std::fmt::{self, Write};

use super::{
    Statistics,
    events::{FAMILIES, Family, LEVELS},
};

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Statistics {
    /// Renders all numbers in Prometheus' text exposition format 0.0.4, to be served as [`CONTENT_TYPE`].
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(8 << 10);
        for Family { name, help, series } in FAMILIES {
            header(&mut text, name, help, "counter");
            for (labels, event) in *series {
                sample(&mut text, name, labels, self.count(*event));
            }
        }
        for Family { name, help, series } in LEVELS {
            header(&mut text, name, help, "gauge");
            for (labels, level) in *series {
                sample(&mut text, name, labels, self.level(*level));
            }
        }
        text
    }
}

/// Appends the header of a family.
pub(crate) fn header(text: &mut String, name: &str, help: &str, kind: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", help_text(help));
}

/// Appends one series. `labels` is the text between the braces, with escaped values.
pub(crate) fn sample(text: &mut String, name: &str, labels: &str, value: impl fmt::Display) {
    let _ = match labels {
        "" => writeln!(text, "{name} {value}"),
        labels => writeln!(text, "{name}{{{labels}}} {value}"),
    };
}

/// Escapes a help text: backslashes and line ends.
fn help_text(help: &str) -> String {
    help.replace('\\', r"\\").replace('\n', r"\n")
}
