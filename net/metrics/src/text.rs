//! Writing of metrics in the text format.

use std::fmt::{self, Write as _};

/// The `Content-Type` of answers in Prometheus' text format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows.
    Counter,
    /// A number that grows and falls.
    Gauge,
    /// Counts of observations by size.
    Histogram,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        })
    }
}

/// Appends the lines `# HELP` and `# TYPE` that precede a family's samples.
pub fn write_header(text: &mut String, name: &str, help: &str, kind: Kind) {
    let help = help.replace('\\', r"\\").replace('\n', r"\n");
    // Writing to a string does not fail.
    _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Appends one series. `labels` is the text between the braces, with values that [`escape_label`] has escaped.
pub fn write_sample(text: &mut String, name: &str, labels: &str, value: impl fmt::Display) {
    _ = match labels {
        "" => writeln!(text, "{name} {value}"),
        labels => writeln!(text, "{name}{{{labels}}} {value}"),
    };
}

/// Escapes the value of a label: backslashes, quotation marks, line ends, and other control characters.
#[must_use]
pub fn escape_label(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => escaped.push_str(r"\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str(r"\n"),
            c if c.is_control() => _ = write!(escaped, "\\\\u{{{:x}}}", u32::from(c)),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        assert_eq!(escape_label("IDL:a/B:1.0"), "IDL:a/B:1.0");
        assert_eq!(escape_label("a\"b\\c\nd"), r#"a\"b\\c\nd"#);
        assert_eq!(escape_label("\r\u{1}"), r"\\u{d}\\u{1}");
    }
}
