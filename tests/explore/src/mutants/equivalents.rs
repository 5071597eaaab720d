//! The mutants that no test can catch, with the reasons.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::outcomes::Outcome;

/// The list's path below the root.
pub(super) const PATH: &str = "tests/explore/mutants.toml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Equivalents {
    #[serde(default)]
    equivalent: Vec<Equivalent>,
}

/// Mutants that behave as the original does.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Equivalent {
    area: String,
    /// The name that cargo-mutants prints, without line and column: `FILE: CHANGE`.
    mutant: String,
    /// A part of the mutated line, where a function has several mutants of this name.
    code: Option<String>,
    reason: String,
}

/// A mutant of an area.
#[derive(Debug)]
pub(super) struct Mutant {
    /// The name that cargo-mutants prints: `FILE:LINE:COLUMN: CHANGE`.
    pub(super) name: String,
    /// The line of the source that it changes.
    pub(super) line: String,
}

impl Equivalents {
    /// Reads the list of equivalent mutants from the text of its file.
    ///
    /// # Errors
    /// Unknown areas, entries without a reason, and other text.
    pub(super) fn parse(text: &str, areas: &[&str]) -> Result<Equivalents> {
        let list: Equivalents = toml::from_str(text).with_context(|| format!("cannot read {PATH}"))?;
        for entry in &list.equivalent {
            anyhow::ensure!(areas.contains(&entry.area.as_str()), "{PATH}: there is no area `{}`", entry.area);
            anyhow::ensure!(!entry.reason.trim().is_empty(), "{PATH}: `{}` has no reason", entry.mutant);
        }
        Ok(list)
    }

    /// Whether a mutant is listed.
    pub(super) fn contains(&self, area: &str, mutant: &Mutant) -> bool {
        self.equivalent.iter().any(|entry| entry.area == area && entry.matches(mutant))
    }

    /// A complaint for each entry that matches no mutant of the area, or one that was caught.
    pub(super) fn complaints(&self, area: &str, mutants: &[(&Mutant, Option<Outcome>)]) -> Vec<String> {
        let mut complaints = Vec::new();
        for entry in self.equivalent.iter().filter(|entry| entry.area == area) {
            let matched: Vec<_> = mutants.iter().filter(|(mutant, _)| entry.matches(mutant)).collect();
            if matched.is_empty() {
                complaints.push(format!("{PATH}: no mutant is `{}`{}", entry.mutant, entry.code_text()));
            }
            let caught = matched.iter().filter(|(_, outcome)| !matches!(outcome, None | Some(Outcome::Missed)));
            complaints
                .extend(caught.map(|(mutant, _)| format!("{PATH}: not equivalent, since not missed: {}", mutant.name)));
        }
        complaints
    }
}

impl Equivalent {
    fn matches(&self, mutant: &Mutant) -> bool {
        without_place(&mutant.name) == self.mutant
            && self.code.as_ref().is_none_or(|code| mutant.line.contains(code.as_str()))
    }

    fn code_text(&self) -> String {
        self.code.as_ref().map(|code| format!(" on a line with `{code}`")).unwrap_or_default()
    }
}

/// The file and the line number, from one, of a mutant's name.
pub(super) fn file_and_line(name: &str) -> Option<(&str, usize)> {
    let (file_and_line, _) = name.split_once(": ")?;
    let mut parts = file_and_line.rsplitn(3, ':');
    let (_column, line, file) = (parts.next()?, parts.next()?, parts.next()?);
    Some((file, line.parse().ok()?))
}

/// A mutant's name without line and column.
fn without_place(name: &str) -> String {
    match (file_and_line(name), name.split_once(": ")) {
        (Some((file, _)), Some((_, change))) => format!("{file}: {change}"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"
        [[equivalent]]
        area = "giop"
        mutant = "orb/giop/src/a.rs: replace < with <= in A::f"
        code = "if one < two"
        reason = "both are never equal"
    "#;

    fn mutant(name: &str, line: &str) -> Mutant {
        Mutant { name: name.to_owned(), line: line.to_owned() }
    }

    fn list(text: &str) -> Result<Equivalents> {
        Equivalents::parse(text, &["giop", "cdr"])
    }

    #[test]
    fn a_mutant_is_listed_by_name_and_line() {
        let list = list(LIST).unwrap();
        let listed = mutant("orb/giop/src/a.rs:7:16: replace < with <= in A::f", "    if one < two {");
        assert!(list.contains("giop", &listed) && !list.contains("cdr", &listed));
        for (name, line) in [
            ("orb/giop/src/a.rs:8:16: replace < with <= in A::f", "    if three < two {"),
            ("orb/giop/src/a.rs:7:16: replace < with > in A::f", "    if one < two {"),
            ("orb/giop/src/b.rs:7:16: replace < with <= in A::f", "    if one < two {"),
        ] {
            assert!(!list.contains("giop", &mutant(name, line)), "{name} {line}");
        }
        assert!(list.complaints("giop", &[(&listed, Some(Outcome::Missed))]).is_empty());
        assert!(list.complaints("giop", &[(&listed, None)]).is_empty(), "it was not tested yet");
    }

    #[test]
    fn an_entry_without_a_mutant_is_an_error_and_so_is_one_that_tests_catch() {
        let list = list(LIST).unwrap();
        let [absent] = &list.complaints("giop", &[])[..] else { panic!("one") };
        assert!(
            absent
                .ends_with("no mutant is `orb/giop/src/a.rs: replace < with <= in A::f` on a line with `if one < two`")
        );
        let listed = mutant("orb/giop/src/a.rs:7:16: replace < with <= in A::f", "if one < two {");
        for outcome in [Outcome::Caught, Outcome::Timeout, Outcome::Unviable] {
            let [caught] = &list.complaints("giop", &[(&listed, Some(outcome))])[..] else { panic!("one") };
            assert!(caught.contains("a.rs:7:16"), "{caught}");
        }
        assert!(list.complaints("cdr", &[]).is_empty());
    }

    #[test]
    fn an_entry_has_an_area_and_a_reason() {
        assert!(list(&LIST.replace("\"giop\"", "\"moon\"")).unwrap_err().to_string().contains("no area `moon`"));
        assert!(list(&LIST.replace("both are never equal", " ")).unwrap_err().to_string().contains("has no reason"));
        list(&LIST.replace("reason", "cause")).unwrap_err();
        assert!(list("").unwrap().complaints("giop", &[]).is_empty());
    }

    #[test]
    fn a_name_has_a_file_and_a_line() {
        assert_eq!(file_and_line("orb/a.rs:17:4: replace f -> A::B with C"), Some(("orb/a.rs", 17)));
        assert_eq!(file_and_line("replace f"), None);
        assert_eq!(without_place("orb/a.rs:17:4: replace A::f: B with C"), "orb/a.rs: replace A::f: B with C");
    }
}
