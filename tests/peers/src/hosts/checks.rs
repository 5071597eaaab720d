//! Checks of results: each request is counted exactly once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::network::{Machine, output};

/// A line of results. Other records and other values are not checked here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "record")]
enum Record {
    Sample(Sample),
    Failure(Failure),
    #[serde(other)]
    Other,
}

/// A sample: numbers of requests, and failed requests by kind.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sample {
    pub(super) target: String,
    round: u32,
    pub(super) requests: u64,
    pub(super) answered: u64,
    pub(super) failed: u64,
    octets: u64,
    pub(super) errors: BTreeMap<String, u64>,
}

/// A sample that could not be taken.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Failure {
    pub(super) lost_agent: Option<String>,
    pub(super) reason: String,
}

/// The records of a file.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) samples: Vec<Sample>,
    pub(super) failures: Vec<Failure>,
}

impl Results {
    /// Reads a file, which a supervisor may be writing: a line without its end is left out.
    pub(super) fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).unwrap_or_default(); // it does not exist at first
        let mut results = Self::default();
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            match serde_json::from_str(line).with_context(|| format!("{}: {line}", file.display()))? {
                Record::Sample(sample) => results.samples.push(sample),
                Record::Failure(failure) => results.failures.push(failure),
                Record::Other => {}
            }
        }
        Ok(results)
    }

    /// Checks that there are so many samples, each once and with so many requests, and that each request is either
    /// answered or an error of one kind. Returns the number of all requests.
    pub(super) fn check(&self, samples: usize, requests: u64, octets: u64) -> Result<u64> {
        let keys: BTreeSet<_> = self.samples.iter().map(|sample| (&sample.target, sample.round)).collect();
        ensure!(
            self.samples.len() == samples && keys.len() == samples,
            "{} samples of {} servers and rounds instead of {samples}",
            self.samples.len(),
            keys.len()
        );
        for sample in &self.samples {
            let errors: u64 = sample.errors.values().sum();
            let is_complete = sample.requests == requests
                && sample.answered + sample.failed == requests
                && errors == sample.failed
                && sample.octets == sample.answered * octets;
            ensure!(is_complete, "requests are lost or counted twice: {sample:?}");
        }
        Ok(self.samples.iter().map(|sample| sample.requests).sum())
    }

    /// Checks that all requests were answered.
    pub(super) fn check_answered(&self) -> Result<()> {
        let failed = self.samples.iter().find(|sample| sample.failed > 0);
        ensure!(failed.is_none(), "requests failed: {failed:?}");
        Ok(())
    }
}

/// The number of TCP connections in a capture that these clients open with the server. A SYN that was sent again counts
/// once.
pub(super) fn connections(capture: &Path, clients: &[&Machine], server: &Machine) -> Result<u64> {
    let clients: Vec<String> = clients.iter().map(|client| format!("ip.src == {}", client.address)).collect();
    let filter = format!(
        "tcp.flags.syn == 1 && tcp.flags.ack == 0 && ip.dst == {} && ({})",
        server.address,
        clients.join(" || ")
    );
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).args(["-Y", &filter, "-T", "fields"]);
    for field in ["ip.src", "tcp.srcport", "tcp.seq_raw"] {
        command.args(["-e", field]);
    }
    let text = output(&mut command)?;
    Ok(text.lines().collect::<BTreeSet<_>>().len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "{\"record\":\"plan\",\"at\":1.0}\n\
        {\"record\":\"sample\",\"target\":\"a/b\",\"round\":0,\"requests\":3,\"answered\":2,\"failed\":1,\"octets\":8000,\
        \"errors\":{\"reset\":1}}\n\
        {\"record\":\"failure\",\"lost_agent\":\"load1\",\"reason\":\"no answer\"}\n{\"record\":\"sam";

    fn results(text: &str) -> Results {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("results.jsonl");
        fs::write(&file, text).unwrap();
        Results::read(&file).unwrap()
    }

    #[test]
    fn each_request_is_counted_once() {
        let good = results(GOOD);
        assert_eq!(good.check(1, 3, 4000).unwrap(), 3);
        assert_eq!(good.failures[0].lost_agent.as_deref(), Some("load1"));
        assert!(good.check_answered().is_err());
        assert!(good.check(2, 3, 4000).is_err() && good.check(1, 4, 4000).is_err());
        for (right, wrong) in [("\"answered\":2", "\"answered\":3"), ("\"reset\":1", "\"reset\":2"), ("8000", "8001")] {
            assert!(results(&GOOD.replace(right, wrong)).check(1, 3, 4000).is_err(), "{wrong}");
        }
    }
}
