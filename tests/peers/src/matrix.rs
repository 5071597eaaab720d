//! Results of the interoperability runs, as a table of case groups by pairing.

use std::collections::BTreeMap;
use std::fmt;

/// The outcome of one case.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// `group/case`.
    pub(crate) name: String,
    /// The failure, if there was one.
    pub(crate) failure: Option<String>,
    /// The reason for which it cannot pass, if it cannot.
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

    fn is_known(&self) -> bool {
        self.failure.is_some() && self.excuse.is_some()
    }
}

/// All outcomes, by pairing in the order in which they were run.
#[derive(Debug, Default)]
pub(crate) struct Matrix {
    runs: Vec<(String, Vec<Outcome>)>,
    /// Pairings with a program that was not available, each with the reason.
    absent: Vec<(String, String)>,
}

impl Matrix {
    pub(crate) fn add(&mut self, title: &str, outcomes: Vec<Outcome>) {
        self.runs.push((title.to_owned(), outcomes));
    }

    /// Adds a pairing that could not be run. The caller decides whether that is a failure.
    pub(crate) fn add_absent(&mut self, title: &str, reason: &str) {
        self.absent.push((title.to_owned(), reason.to_owned()));
    }

    /// The number of cases that were run, in all pairings.
    pub(crate) fn cases(&self) -> usize {
        self.runs.iter().map(|(_, outcomes)| outcomes.len()).sum()
    }

    /// The number of pairings.
    pub(crate) fn pairings(&self) -> usize {
        self.runs.len()
    }

    /// Whether something was run, nothing failed without an excuse, and all pairings ran the same cases.
    pub(crate) fn is_good(&self) -> bool {
        let bad = |outcomes: &[Outcome]| outcomes.is_empty() || outcomes.iter().any(Outcome::is_bad);
        let empty = self.runs.is_empty() && self.absent.is_empty();
        !empty && !self.runs.iter().any(|(_, outcomes)| bad(outcomes)) && self.missing().is_empty()
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

impl Matrix {
    /// Writes the reasons for which cases cannot pass, each with its first failure and its pairings; then the
    /// cases that passed all the same.
    fn write_known(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reasons: BTreeMap<&str, Vec<(&str, &Outcome)>> = BTreeMap::new();
        for (title, outcome) in self.runs.iter().flat_map(|(title, outcomes)| outcomes.iter().map(move |o| (title, o)))
        {
            match (outcome.excuse, &outcome.failure) {
                (Some(reason), Some(_)) => reasons.entry(reason).or_default().push((title, outcome)),
                (Some(reason), None) => writeln!(f, "note {title}: {} passed, though {reason}", outcome.name)?,
                (None, _) => {}
            }
        }
        for (reason, failures) in reasons {
            let (title, first) = failures[0];
            writeln!(f, "known: {reason}")?;
            writeln!(f, "    {title}: {}: {}", first.name, first.failure.as_deref().unwrap_or_default())?;
            let places: BTreeMap<&str, Vec<&str>> =
                failures.iter().fold(BTreeMap::new(), |mut places, (title, outcome)| {
                    places.entry(*title).or_insert_with(Vec::new).push(&outcome.name);
                    places
                });
            for (title, names) in places {
                writeln!(f, "    {title}: {}", names.join(" "))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Matrix {
    /// One line per pairing, one column per group (`passed/run`), then every failure in full.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.groups();
        let titles = self.runs.iter().map(|(title, _)| title).chain(self.absent.iter().map(|(title, _)| title));
        let width = titles.map(String::len).max().unwrap_or(0);
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
        for (title, reason) in &self.absent {
            writeln!(f, "{title:width$}  absent: {reason}")?;
        }
        self.write_known(f)?;
        for (title, outcomes) in &self.runs {
            for Outcome { name, failure, .. } in outcomes.iter().filter(|outcome| outcome.is_bad()) {
                writeln!(f, "FAIL {title}: {name}: {}", failure.as_deref().unwrap_or("no reason given"))?;
            }
        }
        for line in self.missing() {
            writeln!(f, "FAIL {line}")?;
        }
        let all = || self.runs.iter().flat_map(|(_, outcomes)| outcomes);
        let (failed, known) = (all().filter(|o| o.is_bad()).count(), all().filter(|o| o.is_known()).count());
        let (cases, pairings) = (self.cases(), self.pairings());
        write!(f, "{cases} cases in {pairings} pairings: {failed} failed, {known} could not pass")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(names: &[&str]) -> Vec<Outcome> {
        names.iter().map(|name| Outcome::passed(name)).collect()
    }

    #[test]
    fn an_empty_matrix_is_not_good() {
        assert!(!Matrix::default().is_good());
        let mut matrix = Matrix::default();
        matrix.add("a", Vec::new());
        assert!(!matrix.is_good());
    }

    #[test]
    fn an_absent_pairing_has_a_line() {
        let mut matrix = Matrix::default();
        matrix.add_absent("a", "no such program");
        assert!(matrix.to_string().contains("a  absent: no such program"), "{matrix}");
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
    fn failures_are_printed_in_full_and_known_ones_separately() {
        let mut matrix = Matrix::default();
        let mut run = outcomes(&["hub/one"]);
        run.push(Outcome { excuse: Some("so it is"), ..Outcome::failed("bulk/text", "cut".to_owned()) });
        matrix.add("a", run.clone());
        assert!(matrix.is_good());
        assert!(matrix.to_string().contains("known: so it is\n    a: bulk/text: cut\n    a: bulk/text\n"), "{matrix}");
        run.push(Outcome::failed("bulk/octets", "lost".to_owned()));
        matrix.add("b", run);
        assert!(!matrix.is_good());
        assert!(matrix.to_string().contains("FAIL b: bulk/octets: lost"), "{matrix}");
    }

    #[test]
    fn a_case_that_passes_despite_an_excuse_is_reported() {
        let mut matrix = Matrix::default();
        matrix.add("a", vec![Outcome { excuse: Some("so it is"), ..Outcome::passed("bulk/text") }]);
        assert!(matrix.is_good());
        assert!(matrix.to_string().contains("note a: bulk/text passed, though so it is"), "{matrix}");
    }
}
