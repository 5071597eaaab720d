//! Repeated reachability checks of an object, as `ping` does with hosts.
//!
//! Each round makes two checks: a LocateRequest, which the server's ORB answers, and a call of
//! `_non_existent`, which passes through the object adapter. Both are made by the ORB of the reference, over
//! its transports; each has a reference of its own, so that neither follows the forwardings of the other.

use std::fmt;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use spandrel::net::error::escape;
use spandrel::types::{Located, ior_to_string};
use spandrel::{ObjectRef, SystemException};
use spandrel_measure::stats::Summary;

use crate::LabError;

/// The number and the pace of the checks.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The number of rounds, each with one check of every kind.
    pub count: u32,
    /// The time between the starts of two rounds.
    pub interval: Duration,
}

/// The times and the failures of one kind of check.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    asked: u32,
    millis: Vec<f64>,
}

/// The result of one check.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The answer, or the error in one line.
    result: Result<String, String>,
    millis: f64,
}

/// An event that a run reports as soon as it is known.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// The object, and the address that answered the first LocateRequest.
    Begin {
        /// The type in the reference; empty without one.
        type_id: &'e str,
        /// The address that answered, if there was one.
        address: Option<String>,
    },
    /// The checks of one round.
    Round {
        /// Its number, from one.
        number: u32,
        /// The outcome of the LocateRequest.
        locate: &'e Answer,
        /// The call of `_non_existent`.
        non_existent: &'e Answer,
        /// The reference to which the LocateRequest was forwarded.
        forward: Option<String>,
    },
    /// The end of all rounds.
    End {
        /// The outcomes of the LocateRequests.
        locates: &'e Answers,
        /// The outcomes of the calls.
        calls: &'e Answers,
    },
}

impl Answers {
    /// Makes one check, and records its time and outcome.
    fn ask<T>(
        &mut self,
        ask: impl FnOnce() -> Result<T, SystemException>,
        words: impl FnOnce(&T) -> String,
    ) -> (Option<T>, Answer) {
        self.asked += 1;
        let start = Instant::now();
        let result = ask();
        let millis = start.elapsed().as_secs_f64() * 1000.0;
        match result {
            Ok(answer) => {
                self.millis.push(millis);
                let result = Ok(words(&answer));
                (Some(answer), Answer { result, millis })
            }
            Err(error) => (None, Answer { result: Err(super::dump::chain(&error)), millis }),
        }
    }

    fn times(&self) -> Option<Summary> {
        Summary::from_values(self.millis.iter().copied())
    }

    fn summary(&self, what: &str) -> String {
        let answered = self.millis.len();
        let times = self.times().map(|ms| format!("; min/median/max {:.3}/{:.3}/{:.3} ms", ms.low, ms.median, ms.high));
        format!("{} {what}, {answered} answered{}", self.asked, times.unwrap_or_default())
    }

    fn json(&self) -> Value {
        let times = self.times().map(|ms| json!({ "min": ms.low, "median": ms.median, "max": ms.high }));
        json!({ "sent": self.asked, "answered": self.millis.len(), "milliseconds": times })
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.result {
            Ok(text) => write!(f, "{text} in {:.3} ms", self.millis),
            Err(error) => write!(f, "{}", escape(error)),
        }
    }
}

impl Answer {
    fn json(&self) -> Value {
        match &self.result {
            Ok(text) => json!({ "answer": text, "milliseconds": self.millis }),
            Err(error) => json!({ "error": error }),
        }
    }
}

/// Prints the lines of a report.
impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin { type_id, address } => {
                let type_id = escape(if type_id.is_empty() { "an object without a type id" } else { type_id });
                match address {
                    Some(address) => writeln!(f, "pinging {type_id} at {address}"),
                    None => writeln!(f, "pinging {type_id}"),
                }
            }
            Self::Round { number, locate, non_existent, forward } => {
                writeln!(f, "{number}: LocateRequest: {locate}; _non_existent: {non_existent}")?;
                match forward {
                    Some(forward) => writeln!(f, "{number}: forwarded to {forward}"),
                    None => Ok(()),
                }
            }
            Self::End { locates, calls } => {
                writeln!(f, "{}", locates.summary("LocateRequests"))?;
                writeln!(f, "{}", calls.summary("_non_existent calls"))
            }
        }
    }
}

impl Event<'_> {
    /// The event as one JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        match self {
            Self::Begin { type_id, address } => json!({ "type_id": type_id, "address": address }),
            Self::Round { number, locate, non_existent, forward } => json!({
                "round": number,
                "locate_request": locate.json(),
                "non_existent": non_existent.json(),
                "forward": forward,
            }),
            Self::End { locates, calls } => {
                json!({ "locate_requests": locates.json(), "non_existent_calls": calls.json() })
            }
        }
    }
}

/// Runs the checks, and passes each event to `say` as soon as it is known.
///
/// # Errors
/// If `_non_existent` was not answered, with the exception of the last check; or the object does not exist.
pub fn run(object: &ObjectRef, settings: &Settings, mut say: impl FnMut(&Event<'_>)) -> Result<(), LabError> {
    let located = object.orb().reference(object.ior().clone());
    let (mut locates, mut calls) = (Answers::default(), Answers::default());
    let (mut exists, mut failure) = (None, None);
    for number in 1..=settings.count {
        let begin = Instant::now();
        let (location, locate) =
            locates.ask(|| located.locate().inspect_err(|error| failure = Some(error.clone())), status);
        if number == 1 {
            say(&Event::Begin { type_id: object.type_id(), address: address(&located) });
        }
        let (non_existent, call) =
            calls.ask(|| object.non_existent().inspect_err(|error| failure = Some(error.clone())), bool::to_string);
        let forward = match &location {
            Some(Located::Forward(ior) | Located::ForwardPermanently(ior)) => Some(ior_to_string(ior)),
            _ => None,
        };
        say(&Event::Round { number, locate: &locate, non_existent: &call, forward });
        let unknown = matches!(location, Some(Located::Unknown));
        exists = non_existent.map(|non_existent| !non_existent).or(unknown.then_some(false)).or(exists);
        if number < settings.count {
            thread::sleep(settings.interval.saturating_sub(begin.elapsed()));
        }
    }
    say(&Event::End { locates: &locates, calls: &calls });
    match (exists, failure) {
        (Some(true), _) => Ok(()),
        (Some(false), _) => {
            let detail = "the server answers, and the object does not exist".to_owned();
            Err(LabError::Peer { role: "ping".to_owned(), detail })
        }
        (None, Some(cause)) => Err(LabError::Call { action: unanswered(!locates.millis.is_empty()), cause }),
        (None, None) => Err(LabError::Peer { role: "ping".to_owned(), detail: "nothing was answered".to_owned() }),
    }
}

/// The step that failed without an answer of `_non_existent`, in words that follow "cannot".
fn unanswered(is_located: bool) -> String {
    match is_located {
        true => "ask the object whether it exists: LocateRequest was answered, and `_non_existent` failed",
        false => "reach the object: LocateRequest and `_non_existent` failed",
    }
    .to_owned()
}

/// The locate status, as the standard names it.
fn status(located: &Located) -> String {
    match located {
        Located::Here => "OBJECT_HERE",
        Located::Forward(_) => "OBJECT_FORWARD",
        Located::ForwardPermanently(_) => "OBJECT_FORWARD_PERM",
        Located::Unknown => "UNKNOWN_OBJECT",
    }
    .to_owned()
}

/// The address that the last request of this reference went to.
fn address(object: &ObjectRef) -> Option<String> {
    let destinations = object.profile_destinations().ok()?;
    let preferred = object.preferred().load(Ordering::Relaxed);
    destinations.get(preferred).map(|destination| destination.peer.address().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use spandrel::CompletionStatus;

    #[test]
    fn replies_are_counted_and_timed_and_failures_only_counted() {
        let mut answers = Answers::default();
        let (answer, text) = answers.ask(|| Ok(7), |answer| format!("got {answer}"));
        assert_eq!(answer, Some(7));
        let text = text.to_string();
        assert!(text.starts_with("got 7 in ") && text.ends_with(" ms"), "{text}");
        let failure = || Err::<i32, _>(SystemException::timeout(0, CompletionStatus::Maybe));
        let (answer, text) = answers.ask(failure, |_| String::new());
        assert_eq!(answer, None);
        assert!(text.to_string().starts_with("CORBA::TIMEOUT"), "{text}");
        let summary = answers.summary("questions");
        assert!(summary.starts_with("2 questions, 1 answered; min/median/max "), "{summary}");
        assert_eq!(Answers { asked: 3, millis: Vec::new() }.summary("questions"), "3 questions, 0 answered");
        assert_eq!(answers.json()["answered"], 1);
    }
}
