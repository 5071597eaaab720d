//! What came of the interoperability runs, as a table of case groups by pairing.

use std::collections::BTreeMap;
use std::fmt;

/// What came of one case.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// `group/case`.
    pub(crate) name: String,
    /// What went wrong, if anything did.
    pub(crate) failure: Option<String>,
    /// Why that is nevertheless as it should be.
    pub(crate) excuse: Option<&'static str>,
}

impl Outcome {
    pub(crate) fn passed(name: &str) -> Self {
        Self { name: name.to_owned(), failure: None, excuse: None }
    }

    pub(crate) fn failed(name: &str, failure: String) -> Self {
        Self { name: name.to_owned(), failure: Some(failure), excuse: None }
    }

    fn group(&self) -> &str {
        self.name.split('/').next().unwrap_or(&self.name)
    }

    fn is_bad(&self) -> bool {
        self.failure.is_some() && self.excuse.is_none()
    }
}

/// All outcomes, by pairing in the order in which they were run.
#[derive(Debug, Default)]
pub(crate) struct Matrix {
    runs: Vec<(String, Vec<Outcome>)>,
}

impl Matrix {
    pub(crate) fn add(&mut self, title: &str, outcomes: Vec<Outcome>) {
        self.runs.push((title.to_owned(), outcomes));
    }

    /// True if something was run, nothing failed without an excuse, and all pairings ran the same cases.
    pub(crate) fn is_good(&self) -> bool {
        let bad = |outcomes: &[Outcome]| outcomes.is_empty() || outcomes.iter().any(Outcome::is_bad);
        !self.runs.is_empty() && !self.runs.iter().any(|(_, outcomes)| bad(outcomes)) && self.missing().is_empty()
    }

    /// Cases that one pairing ran and another did not.
    fn missing(&self) -> Vec<String> {
        let all: BTreeMap<&str, &str> =
            self.runs.iter().flat_map(|(t, outcomes)| outcomes.iter().map(|o| (o.name.as_str(), t.as_str()))).collect();
        let mut missing = Vec::new();
        for (title, outcomes) in &self.runs {
            for (name, elsewhere) in &all {
                if !outcomes.iter().any(|outcome| outcome.name == *name) {
                    missing.push(format!("{title}: did not run {name}, which {elsewhere} did"));
                }
            }
        }
        missing
    }

    fn groups(&self) -> Vec<&str> {
        let mut groups = Vec::new();
        for outcome in self.runs.iter().flat_map(|(_, outcomes)| outcomes) {
            if !groups.contains(&outcome.group()) {
                groups.push(outcome.group());
            }
        }
        groups
    }
}

impl fmt::Display for Matrix {
    /// One line per pairing, one column per group (`passed/run`), then every failure in full.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.groups();
        let width = self.runs.iter().map(|(title, _)| title.len()).max().unwrap_or(0);
        write!(f, "{:width$}", "")?;
        for group in &groups {
            write!(f, "  {group}")?;
        }
        writeln!(f)?;
        for (title, outcomes) in &self.runs {
            write!(f, "{title:width$}")?;
            for group in &groups {
                let of_group: Vec<&Outcome> = outcomes.iter().filter(|o| o.group() == *group).collect();
                let passed = of_group.iter().filter(|o| o.failure.is_none()).count();
                let cell = if of_group.is_empty() { "-".to_owned() } else { format!("{passed}/{}", of_group.len()) };
                write!(f, "  {cell:>0$}", group.len())?;
            }
            writeln!(f)?;
        }
        for (title, outcomes) in &self.runs {
            for outcome in outcomes {
                let Some(what) = &outcome.failure else { continue };
                match outcome.excuse {
                    None => writeln!(f, "FAIL {title}: {}: {what}", outcome.name)?,
                    Some(reason) => writeln!(f, "known {title}: {}: {what} ({reason})", outcome.name)?,
                }
            }
        }
        for line in self.missing() {
            writeln!(f, "FAIL {line}")?;
        }
        let all = || self.runs.iter().flat_map(|(_, outcomes)| outcomes);
        let (run, failed) = (all().count(), all().filter(|o| o.is_bad()).count());
        let known = all().filter(|o| o.excuse.is_some()).count();
        write!(f, "{run} cases in {} pairings: {failed} failed, {known} known faults of omniORB", self.runs.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(names: &[&str]) -> Vec<Outcome> {
        names.iter().map(|name| Outcome::passed(name)).collect()
    }

    #[test]
    fn nothing_run_is_not_good() {
        assert!(!Matrix::default().is_good());
        let mut matrix = Matrix::default();
        matrix.add("a", Vec::new());
        assert!(!matrix.is_good());
    }

    #[test]
    fn a_case_that_only_one_pairing_ran_is_a_failure() {
        let mut matrix = Matrix::default();
        matrix.add("a", outcomes(&["hub/one", "hub/two"]));
        assert!(matrix.is_good());
        matrix.add("b", outcomes(&["hub/one"]));
        assert!(!matrix.is_good());
        assert!(matrix.to_string().contains("FAIL b: did not run hub/two, which a did"), "{matrix}");
    }

    #[test]
    fn failures_are_told_in_full_and_excuses_beside_them() {
        let mut matrix = Matrix::default();
        let mut run = outcomes(&["hub/one"]);
        run.push(Outcome { excuse: Some("so it is"), ..Outcome::failed("bulk/text", "cut".to_owned()) });
        matrix.add("a", run.clone());
        assert!(matrix.is_good());
        assert!(matrix.to_string().contains("known a: bulk/text: cut (so it is)"), "{matrix}");
        run.push(Outcome::failed("bulk/octets", "lost".to_owned()));
        matrix.add("b", run);
        assert!(!matrix.is_good());
        assert!(matrix.to_string().contains("FAIL b: bulk/octets: lost"), "{matrix}");
    }
}
