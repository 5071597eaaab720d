//! Repeated reachability checks of an object, as `ping` does with hosts.
//!
//! Each round makes two checks: a LocateRequest, which the server's ORB answers, and a call of
//! `_non_existent`, which passes through the object adapter.

use std::thread;
use std::time::{Duration, Instant};

use spandrel::Orb;
use spandrel_giop::LocateStatus;

use super::locate::Locator;
use crate::LabError;
use crate::stats::Summary;

/// Settings of the checks.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The reference, as `IOR:` or `corbaloc:`.
    pub reference: String,
    /// The number of rounds.
    pub count: u32,
    /// The time between the starts of two rounds.
    pub interval: Duration,
    /// The time limit of connecting, and of each answer.
    pub timeout: Duration,
}

/// The answers to one kind of check.
#[derive(Clone, Debug, Default)]
struct Answers {
    asked: u32,
    millis: Vec<f64>,
}

impl Answers {
    /// Makes one check, and returns the result, also as text with its time.
    fn ask<T>(
        &mut self,
        ask: impl FnOnce() -> Result<T, LabError>,
        words: impl FnOnce(&T) -> String,
    ) -> (Option<T>, String) {
        self.asked += 1;
        let start = Instant::now();
        match ask() {
            Ok(answer) => {
                let millis = start.elapsed().as_secs_f64() * 1000.0;
                self.millis.push(millis);
                let text = format!("{} in {millis:.3} ms", words(&answer));
                (Some(answer), text)
            }
            Err(error) => (None, error.chain()),
        }
    }

    fn summary(&self, what: &str) -> String {
        let answered = self.millis.len();
        let times = Summary::of(self.millis.iter().copied());
        let times = times.map(|ms| format!("; min/median/max {:.3}/{:.3}/{:.3} ms", ms.low, ms.median, ms.high));
        format!("{} {what}, {answered} answered{}", self.asked, times.unwrap_or_default())
    }
}

/// Runs the checks, and passes each line of the report to `say` as soon as it is known.
///
/// # Errors
/// If the reference is invalid, no address can be connected to, no check was answered, or the object does not
/// exist.
pub fn run(settings: &Settings, mut say: impl FnMut(&str)) -> Result<(), LabError> {
    let orb = Orb::builder()
        .connect_timeout(Some(settings.timeout))
        .request_timeout(Some(settings.timeout))
        .build()
        .map_err(LabError::call("make the ORB"))?;
    let object = orb.string_to_object(&settings.reference).map_err(LabError::call("read the reference"))?;
    let start = Instant::now();
    let mut locator = Locator::connect(object.ior(), settings.timeout)?;
    let connected = start.elapsed().as_secs_f64() * 1000.0;
    let type_id = if object.type_id().is_empty() { "an object without a type id" } else { object.type_id() };
    say(&format!("pinging {type_id} at {}, connected in {connected:.3} ms", locator.addr()));

    let (mut locates, mut calls) = (Answers::default(), Answers::default());
    let mut exists = None;
    for turn in 1..=settings.count {
        let begin = Instant::now();
        let (located, locate_text) = locates.ask(|| locator.locate(), |located| located.status.to_string());
        let ask = || object.non_existent().map_err(LabError::call("call _non_existent"));
        let (non_existent, call_text) = calls.ask(ask, bool::to_string);
        say(&format!("{turn}: LocateRequest: {locate_text}; _non_existent: {call_text}"));
        if let Some(forward) = located.as_ref().and_then(|located| located.forward.as_ref()) {
            say(&format!("{turn}: forwarded to {}", spandrel_giop::ior_to_string(forward)));
        }
        let unknown = located.is_some_and(|located| located.status == LocateStatus::UnknownObject);
        exists = non_existent.map(|non_existent| !non_existent).or(unknown.then_some(false)).or(exists);
        if turn < settings.count {
            thread::sleep(settings.interval.saturating_sub(begin.elapsed()));
        }
    }
    say(&locates.summary("LocateRequests"));
    say(&calls.summary("_non_existent calls"));
    let no = |detail: &str| Err(LabError::Peer { role: "ping".to_owned(), detail: detail.to_owned() });
    match exists {
        Some(true) => Ok(()),
        Some(false) => no("the server answers, and the object does not exist"),
        None => no("nothing was answered"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_counted_and_timed_and_failures_only_counted() {
        let mut answers = Answers::default();
        let (answer, text) = answers.ask(|| Ok(7), |answer| format!("got {answer}"));
        assert_eq!(answer, Some(7));
        assert!(text.starts_with("got 7 in ") && text.ends_with(" ms"), "{text}");
        let (answer, text) = answers.ask(|| Err::<i32, _>(LabError::Settings("no way".to_owned())), |_| String::new());
        assert_eq!((answer, text.as_str()), (None, "no way"));
        assert!(
            answers.summary("questions").starts_with("2 questions, 1 answered; min/median/max "),
            "{}",
            answers.summary("questions")
        );
        assert_eq!(Answers { asked: 3, millis: Vec::new() }.summary("questions"), "3 questions, 0 answered");
    }

    #[test]
    fn an_invalid_reference_is_an_error_with_its_cause() {
        let settings = Settings {
            reference: "IOR:xyz".to_owned(),
            count: 1,
            interval: Duration::ZERO,
            timeout: Duration::from_secs(1),
        };
        let error = run(&settings, |_| {}).unwrap_err();
        assert!(error.chain().starts_with("cannot read the reference: CORBA::BAD_PARAM"), "{}", error.chain());
    }
}
