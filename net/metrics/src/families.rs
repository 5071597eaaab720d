//! Merging of the metric families of several sources.

use std::collections::BTreeMap;
use std::fmt;

use crate::{escape_label, series, write_sample};

/// Metrics of several parts of a process as one text, in which each family stands once.
#[derive(Clone, Debug, Default)]
pub struct Families {
    /// Their names in the order in which they came.
    order: Vec<String>,
    families: BTreeMap<String, Family>,
}

/// A family of series.
#[derive(Clone, Debug, Default)]
struct Family {
    /// Its lines of help and type.
    comments: String,
    /// The lines of its series.
    series: String,
}

impl Families {
    /// Adds the families of a text. `label`, a name and a value, is added to each series: parts that have the same families
    /// need one that tells them apart. Lines that are no series are left out.
    pub fn add(&mut self, text: &str, label: Option<(&str, &str)>) {
        let label = label.map(|(name, value)| format!("{name}=\"{}\"", escape_label(value)));
        // The parts of a histogram belong to the family that its comment names.
        let mut family = String::new();
        for line in text.lines() {
            if let Some(comment) = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE ")) {
                family = comment.split(' ').next().unwrap_or_default().to_owned();
                let entry = self.family(&family);
                let (kind, start) = (&line[..7], format!("{} {family} ", &line[..6]));
                if !entry.comments.lines().any(|line| line.starts_with(kind) && line.starts_with(&start)) {
                    entry.comments.push_str(line);
                    entry.comments.push('\n');
                }
                continue;
            }
            let Some(series) = series(line).next() else { continue };
            let name = series.name();
            let is_part = name
                .strip_prefix(family.as_str())
                .is_some_and(|suffix| matches!(suffix, "" | "_bucket" | "_sum" | "_count"));
            let labels = match (&label, series.labels_text.trim_end_matches([',', ' '])) {
                (None, labels) => labels.to_owned(),
                (Some(label), "") => label.clone(),
                (Some(label), labels) => format!("{label},{labels}"),
            };
            let owner = if is_part && !family.is_empty() { family.clone() } else { name.to_owned() };
            let known = self.family(&owner);
            write_sample(&mut known.series, name, &labels, series.value_text);
        }
    }

    fn family(&mut self, name: &str) -> &mut Family {
        if !self.families.contains_key(name) {
            self.order.push(name.to_owned());
        }
        self.families.entry(name.to_owned()).or_default()
    }
}

impl fmt::Display for Families {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for family in self.order.iter().filter_map(|name| self.families.get(name)) {
            write!(f, "{}{}", family.comments, family.series)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_of_two_parts_stand_once() {
        let text = "# HELP a Text of a.\n# TYPE a counter\na 1\na{x=\"1\",} 2\n# HELP t Times.\n# TYPE t histogram\n\
                    t_bucket{le=\"1\"} 1\nt_sum 0.5\nt_count 1\nother 7 123\n";
        let mut families = Families::default();
        families.add(text, Some(("service", "One \"1\"")));
        families.add(text, Some(("service", "Two")));
        families.add("a 9\n", None);
        let one = "service=\"One \\\"1\\\"\"";
        let expected = format!(
            "# HELP a Text of a.\n# TYPE a counter\na{{{one}}} 1\na{{{one},x=\"1\"}} 2\na{{service=\"Two\"}} 1\n\
             a{{service=\"Two\",x=\"1\"}} 2\na 9\n# HELP t Times.\n# TYPE t histogram\nt_bucket{{{one},le=\"1\"}} 1\n\
             t_sum{{{one}}} 0.5\nt_count{{{one}}} 1\nt_bucket{{service=\"Two\",le=\"1\"}} 1\nt_sum{{service=\"Two\"}} 0.5\n\
             t_count{{service=\"Two\"}} 1\nother{{{one}}} 7 123\nother{{service=\"Two\"}} 7 123\n"
        );
        assert_eq!(families.to_string(), expected);
    }
}
