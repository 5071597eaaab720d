//! Reading of metrics in the text format.

use std::fmt;

/// One series of a text of metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Series<'t> {
    name: &'t str,
    /// The text between the braces.
    pub(crate) labels_text: &'t str,
    labels: Vec<(&'t str, String)>,
    value: f64,
    /// The text after the labels: the value, and perhaps a time stamp.
    pub(crate) value_text: &'t str,
}

impl<'t> Series<'t> {
    /// The name before the labels, such as `http_requests_total`.
    #[must_use]
    pub fn name(&self) -> &'t str {
        self.name
    }

    /// The value of the label with this name.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| *label == name).map(|(_, value)| value.as_str())
    }

    /// The names and values of labels, in the order of the text.
    pub fn labels(&self) -> impl Iterator<Item = (&'t str, &str)> {
        self.labels.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// The value of the sample, perhaps infinite or NaN.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Reads a line: a name, labels between braces, a value, and perhaps a time stamp, which is ignored.
    fn parse(line: &'t str) -> Option<Self> {
        let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':')).filter(|end| *end > 0)?;
        let (name, rest) = line.split_at(end);
        let (labels_text, labels, rest) = match rest.trim_start().strip_prefix('{') {
            Some(text) => {
                let (labels, length) = labels(text)?;
                (&text[..length], labels, &text[length + 1..])
            }
            None => ("", Vec::new(), rest),
        };
        let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
        Some(Self { name, labels_text, labels, value, value_text: rest.trim() })
    }
}

/// The name and the labels, as in the text.
impl fmt::Display for Series<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.labels_text {
            "" => f.write_str(self.name),
            labels => write!(f, "{}{{{labels}}}", self.name),
        }
    }
}

/// The series of a text of metrics. Comments, and lines that are no series, are left out.
pub fn series(text: &str) -> impl Iterator<Item = Series<'_>> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| Series::parse(line.trim()))
}

/// Reads `name="value",…` up to a brace; returns the labels and the length of the text before the brace.
fn labels(text: &str) -> Option<(Vec<(&str, String)>, usize)> {
    let (mut labels, mut at) = (Vec::new(), 0);
    loop {
        let rest = &text[at..];
        let skipped = rest.len() - rest.trim_start_matches([' ', '\t', ',']).len();
        at += skipped;
        if text[at..].starts_with('}') {
            return Some((labels, at));
        }
        let equals = at + text[at..].find('=')?;
        let name = text[at..equals].trim_end();
        let quoted = text[equals + 1..].trim_start().strip_prefix('"')?;
        let (value, length) = quoted_value(quoted)?;
        at = text.len() - quoted.len() + length + 1;
        labels.push((name, value));
    }
}

/// Reads a value up to its closing quotation mark; returns it and the length of its text.
fn quoted_value(text: &str) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, at)),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                escaped => value.push(escaped),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{escape_label, write_sample};

    #[test]
    fn series_are_read_and_other_lines_left_out() {
        let text = "# HELP a Text\n# TYPE a counter\na 1\nb{x=\"1\",y=\"a\\\"}, b\\n\"} 2.5 1700000000\nc{} +Inf\n\
                    {x=\"1\"} 3\nd{x=\"1\" 3\nd{x=1} 3\ne\nf x\ng { p = \"q\" , } 4\n";
        let read: Vec<_> = series(text).collect();
        let names: Vec<_> = read.iter().map(|series| (series.name(), series.value())).collect();
        assert_eq!(names, [("a", 1.0), ("b", 2.5), ("c", f64::INFINITY), ("g", 4.0)]);
        assert_eq!(read[1].labels().collect::<Vec<_>>(), [("x", "1"), ("y", "a\"}, b\n")]);
        assert_eq!((read[3].label("p"), read[3].label("q")), (Some("q"), None));
    }

    proptest! {
        #[test]
        fn written_series_are_read(value in any::<u32>(), label in "[^\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f]{0,20}") {
            let mut text = String::new();
            write_sample(&mut text, "name", &format!("label=\"{}\",other=\"\"", escape_label(&label)), value);
            let all: Vec<_> = series(&text).collect();
            prop_assert_eq!(all.len(), 1, "{}", text);
            prop_assert_eq!(all[0].label("label"), Some(label.as_str()));
            prop_assert_eq!(all[0].value(), f64::from(value));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in any::<String>(), line in "[a{}=\",\\\\ 1n]{0,20}") {
            series(&text).chain(series(&line)).for_each(drop);
        }
    }
}
