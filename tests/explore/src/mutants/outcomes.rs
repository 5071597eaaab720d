//! The results of mutants, kept in a file from one run to the next.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The consequence of a mutant.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    /// It does not compile.
    Unviable,
    /// A test has failed, so that the change was noticed.
    Caught,
    /// The tests did not end in time.
    Timeout,
    /// All tests have passed in spite of the change.
    Missed,
}

/// The lists of cargo-mutants, each with the outcome of the mutants in it.
const LISTS: [(&str, Outcome); 4] = [
    ("unviable.txt", Outcome::Unviable),
    ("caught.txt", Outcome::Caught),
    ("timeout.txt", Outcome::Timeout),
    ("missed.txt", Outcome::Missed),
];
/// The durations of cargo-mutants.
const DURATIONS: &str = "outcomes.json";

/// The results of an area.
#[derive(Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct State {
    /// A hash of the sources and tests that the results are valid for.
    pub(super) key: u64,
    /// The index of the suite that runs. The mutants that the suites before it have missed have no outcome yet.
    pub(super) suite: usize,
    /// The time of all builds and tests.
    pub(super) seconds: f64,
    /// Whether some results are those of other tests than the present ones.
    pub(super) has_older_results: bool,
    /// By the mutant's name.
    pub(super) outcomes: BTreeMap<String, Outcome>,
}

/// The durations in `outcomes.json`.
#[derive(Deserialize)]
struct Durations {
    outcomes: Vec<Scenario>,
}

#[derive(Deserialize)]
struct Scenario {
    phase_results: Vec<Phase>,
}

#[derive(Deserialize)]
struct Phase {
    /// The duration of a build or of the tests, in seconds.
    duration: f64,
}

impl State {
    /// Reads a state; an empty one if there is none.
    ///
    /// # Errors
    /// A file of another form.
    pub(super) fn read(file: &Path) -> Result<State> {
        match fs::read(file) {
            Err(_) => Ok(State::default()),
            Ok(octets) => serde_json::from_slice(&octets).with_context(|| format!("cannot read {}", file.display())),
        }
    }

    pub(super) fn write(&self, file: &Path) -> Result<()> {
        let partial = file.with_extension("partial");
        fs::write(&partial, serde_json::to_vec_pretty(self)?).with_context(|| partial.display().to_string())?;
        fs::rename(&partial, file).with_context(|| file.display().to_string())
    }

    /// Adds the results in a folder `mutants.out`, also of a run that was interrupted, and removes them there.
    pub(super) fn take_results(&mut self, folder: &Path) -> Result<()> {
        for (list, outcome) in LISTS {
            let names = fs::read_to_string(folder.join(list)).unwrap_or_default();
            // A line without an end was not written whole.
            let whole = names.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
            self.outcomes.extend(whole.map(|name| (name.to_owned(), outcome)));
        }
        let durations = fs::read(folder.join(DURATIONS)).unwrap_or_default();
        if let Ok(durations) = serde_json::from_slice::<Durations>(&durations) {
            let phases = durations.outcomes.iter().flat_map(|scenario| &scenario.phase_results);
            self.seconds += phases.map(|phase| phase.duration).sum::<f64>();
        }
        for file in LISTS.map(|(list, _)| list).into_iter().chain([DURATIONS]) {
            match fs::remove_file(folder.join(file)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| folder.join(file).display().to_string());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes the results those of this key. Others are dropped, except that `keeps` keeps mutants which were not missed.
    pub(super) fn adapt(&mut self, key: u64, keeps: bool) {
        if self.key == key {
            return;
        }
        if keeps {
            self.outcomes.retain(|_, outcome| *outcome != Outcome::Missed);
            self.has_older_results = !self.outcomes.is_empty();
            self.suite = 0;
        } else {
            *self = State::default();
        }
        self.key = key;
    }

    /// Goes on with the next suite, which tests the mutants that were missed.
    pub(super) fn begin_next_suite(&mut self) {
        self.suite += 1;
        self.outcomes.retain(|_, outcome| *outcome != Outcome::Missed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_taken_once_and_a_partial_line_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("caught.txt", "a.rs:1:2: replace f\na.rs:2:2: replace g\n");
        write("missed.txt", "a.rs:3:2: replace h\na.rs:4:2: repl");
        write("unviable.txt", "a.rs:5:2: replace i\n");
        let scenario =
            r#"{"scenario": "Baseline", "phase_results": [{"phase": "Build", "duration": 2.5}, {"duration": 0.5}]}"#;
        write("outcomes.json", &format!(r#"{{"outcomes": [{scenario}, {{"phase_results": [{{"duration": 1.0}}]}}]}}"#));
        let mut state = State::default();
        state.take_results(folder.path()).unwrap();
        let expected = [Outcome::Caught, Outcome::Caught, Outcome::Missed, Outcome::Unviable];
        assert_eq!(state.outcomes.values().copied().collect::<Vec<_>>(), expected);
        assert_eq!(state.seconds, 4.0);
        state.take_results(folder.path()).unwrap();
        assert_eq!((state.outcomes.len(), state.seconds), (4, 4.0));
    }

    #[test]
    fn a_state_is_read_as_it_was_written_and_an_absent_one_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.json");
        assert_eq!(State::read(&file).unwrap(), State::default());
        let outcomes = BTreeMap::from([("a.rs:1:2: replace f".to_owned(), Outcome::Timeout)]);
        let state = State { key: u64::MAX, suite: 1, seconds: 0.25, has_older_results: true, outcomes };
        state.write(&file).unwrap();
        assert_eq!(State::read(&file).unwrap(), state);
        fs::write(&file, "{").unwrap();
        State::read(&file).unwrap_err();
    }

    #[test]
    fn other_sources_void_the_results_and_caught_mutants_are_kept_only_on_demand() {
        let outcomes = [Outcome::Caught, Outcome::Missed, Outcome::Unviable, Outcome::Timeout];
        let state = || State {
            key: 1,
            suite: 1,
            outcomes: outcomes.into_iter().map(|outcome| (format!("{outcome:?}"), outcome)).collect(),
            ..State::default()
        };
        let mut same = state();
        same.adapt(1, false);
        assert_eq!(same, state());
        let mut void = state();
        void.adapt(2, false);
        assert_eq!(void, State { key: 2, ..State::default() });
        let mut adapted = state();
        adapted.adapt(2, true);
        assert!(adapted.has_older_results && adapted.suite == 0);
        assert_eq!(adapted.outcomes.into_keys().collect::<Vec<_>>(), ["Caught", "Timeout", "Unviable"]);
    }

    #[test]
    fn the_next_suite_tests_what_the_one_before_has_missed() {
        let outcomes = [Outcome::Caught, Outcome::Missed].map(|outcome| (format!("{outcome:?}"), outcome));
        let mut state = State { outcomes: BTreeMap::from(outcomes), ..State::default() };
        state.begin_next_suite();
        assert_eq!((state.suite, state.outcomes.len()), (1, 1));
        assert_eq!(state.outcomes["Caught"], Outcome::Caught);
    }
}
