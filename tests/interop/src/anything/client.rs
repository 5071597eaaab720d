//! The client: its cases have the same names as those of `peers/omniorb/anything.cc`.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, mpsc};

use anyhow::{Context, Result, bail, ensure};
use spandrel::messaging::ExceptionHolder;
use spandrel::{
    Orb, SystemException, SystemExceptionKind,
    types::{Any, Typed, WString},
};

use super::samples::{Sample, all, check, point};
use super::show::{rebuild, show, show_type};
use super::{other, text_of, units_of};
use crate::anything_idl::*;
use crate::suite::{Suite, TIME_LIMIT, Tally};

/// The characters that narrow strings can carry on a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Narrow {
    /// All of Unicode.
    Unicode,
    /// The characters of ISO 8859-1: the native code set of at least one side.
    Latin1,
}

/// Runs all cases against a `Desk`; `say` receives a line for each.
///
/// # Errors
/// If the reference does not denote a `Desk`.
pub fn run(orb: &Orb, reference: &str, narrow: Narrow, say: &mut dyn FnMut(&str)) -> Result<Tally> {
    run_suite(orb, reference, say, |suite, desk| all_cases(suite, desk, narrow))
}

/// Sends one sample text, and `beyond`, if given: a text that must raise DATA_CONVERSION.
///
/// # Errors
/// If the reference does not denote a `Desk`.
pub fn run_texts(
    orb: &Orb,
    reference: &str,
    sample: &str,
    beyond: Option<&str>,
    say: &mut dyn FnMut(&str),
) -> Result<Tally> {
    run_suite(orb, reference, say, |suite, desk| {
        suite.case("text/ascii", || narrow_text(desk, "text"));
        suite.case("text/narrow", || narrow_text(desk, sample));
        suite.case("text/wide", || wide_text(desk, sample));
        suite.case("text/wchar", || {
            let (letter, mut b) = (sample.chars().next().context("an empty sample")?, 'b');
            equal((desk.pass_wchar(letter, &mut b)?, b), ((letter, 'b'), letter))
        });
        if let Some(beyond) = beyond {
            suite.case("text/beyond", || {
                refuses(desk.heard(beyond))?;
                refuses(desk.said(&units_of(beyond)))
            });
        }
        Ok(())
    })
}

fn run_suite(
    orb: &Orb,
    reference: &str,
    say: &mut dyn FnMut(&str),
    cases: impl FnOnce(&mut Suite<'_>, &Desk) -> Result<()>,
) -> Result<Tally> {
    orb.register_plain_value::<dyn Node>();
    let object = orb.string_to_object(reference)?.with_timeout(Some(TIME_LIMIT));
    let desk = Desk::narrow(&object).context("the object is not a Desk")?;
    let mut suite = Suite::new("", say);
    cases(&mut suite, &desk)?;
    suite.case("shutdown", || Ok(desk.shutdown()?));
    orb.shutdown()?;
    Ok(suite.tally)
}

fn all_cases(suite: &mut Suite<'_>, desk: &Desk, narrow: Narrow) -> Result<()> {
    for sample in all() {
        suite.case(&format!("any/{}", sample.name), || any(desk, sample));
        suite.case(&format!("dynany/{}", sample.name), || dyn_any(desk, sample));
        suite.case(&format!("typecode/{}", sample.name), || type_code(desk, sample));
    }
    suite.case("exception/any", || match desk.fail(&Any::new(point(-1, 2.5))?) {
        Err(desk::FailError::Broke(broke)) => {
            equal(broke.why.as_str(), "as you asked")?;
            check("what", "point", &broke.what)
        }
        other => bail!("no exception, or another one: {other:?}"),
    });
    texts(suite, desk, narrow);
    wide_texts(suite, desk);
    asynchronous(suite, &desk.the_halver()?.context("the halver is nil")?);
    Ok(())
}

fn any(desk: &Desk, sample: &Sample) -> Result<()> {
    let sent = (sample.value)()?;
    check("exchanged", sample.name, &desk.exchange(sample.name, &sent)?)?;
    let mut b = other();
    let (result, c) = desk.pass(&sent, &mut b)?;
    check("result", sample.name, &result)?;
    check("b", sample.name, &b)?;
    equal(show(&c)?, show(&other())?)
}

fn dyn_any(desk: &Desk, sample: &Sample) -> Result<()> {
    let sent = rebuild(&(sample.value)()?)?;
    check("exchanged", sample.name, &desk.exchange(sample.name, &sent)?)?;
    equal(desk.show(&sent)?, show(&(sample.value)()?)?)?;
    check("rebuilt", sample.name, &desk.rebuild(&sent)?)
}

fn type_code(desk: &Desk, sample: &Sample) -> Result<()> {
    let sent = (sample.value)()?;
    let own = sent.type_code();
    let returned = desk.exchange_type(sample.name, own)?;
    ensure!(returned.equivalent(own), "not equivalent");
    equal(show_type(&returned)?, show_type(own)?)?;
    equal(desk.show_type(own)?, show_type(own)?)?;
    let mut b = i32::type_code();
    let (result, c) = desk.pass_type(own, &mut b)?;
    equal((show_type(&result)?, show_type(&b)?), (show_type(own)?, show_type(own)?))?;
    equal(c, i32::type_code())
}

fn narrow_text(desk: &Desk, text: &str) -> Result<()> {
    equal(desk.heard(text)?, units_of(text))?;
    equal(desk.said(&units_of(text))?.as_str(), text)?;
    let mut b = "other".to_owned();
    let (result, c) = desk.pass_string(text, &mut b)?;
    equal([result.as_str(), b.as_str(), c.as_str()], [text, text, "other"])
}

fn texts(suite: &mut Suite<'_>, desk: &Desk, narrow: Narrow) {
    suite.case("string/empty", || narrow_text(desk, ""));
    suite.case("string/ascii", || narrow_text(desk, "text"));
    suite.case("string/latin1", || narrow_text(desk, "caféÿ"));
    suite.case("string/euro", || {
        if narrow == Narrow::Unicode {
            return narrow_text(desk, "5 €");
        }
        refuses(desk.heard("€"))?;
        refuses(desk.said(&units_of("€")))
    });
}

fn refuses<T: Debug>(result: Result<T, SystemException>) -> Result<()> {
    match result {
        Err(error) if error.kind() == SystemExceptionKind::DataConversion => Ok(()),
        other => bail!("expected DATA_CONVERSION, saw {other:?}"),
    }
}

fn wide_text(desk: &Desk, text: &str) -> Result<()> {
    equal(desk.wide_units(text)?, units_of(text))?;
    equal(&*desk.wide_text(&units_of(text))?, text)?;
    let mut b = WString::from("other");
    let (result, c) = desk.pass_wstring(text, &mut b)?;
    equal([&*result, &*b, &*c], [text, text, "other"])
}

fn wide_texts(suite: &mut Suite<'_>, desk: &Desk) {
    suite.case("wide/empty", || wide_text(desk, ""));
    suite.case("wide/ascii", || wide_text(desk, "text"));
    suite.case("wide/euro", || wide_text(desk, "5 €\u{feff}\u{fffd}"));
    suite.case("wide/pair", || wide_text(desk, &text_of(&[0xd83d, 0xde00])?)); // two code units, one character
    suite.case("wide/wchar", || {
        let mut b = 'b';
        equal((desk.pass_wchar('€', &mut b)?, b), (('€', 'b'), '€'))
    });
    suite.case("wide/sequence", || {
        let texts = ["one", "", "5 €"].map(WString::from).to_vec();
        equal(desk.pass_texts(&texts)?, texts)
    });
    suite.case("wide/struct", || {
        let pair = WidePair { text: "wide".into(), letter: 'é' };
        equal(desk.pass_pair(&pair)?, pair)
    });
    suite.case("wide/union", || {
        let choice = WideChoice::Letter { discriminator: 7, value: '€' };
        equal(desk.pass_choice(&choice)?, choice)
    });
}

/// Sends the result of each callback to a channel.
struct RecordingHandler(Mutex<mpsc::Sender<String>>);

impl RecordingHandler {
    fn record(&self, what: String) {
        // The receiver may be gone after its timeout.
        _ = self.0.lock().expect("no thread panics with the lock held").send(what);
    }
}

impl AmiHalverHandler for RecordingHandler {
    fn half(&self, result: i32, rest: i32) {
        self.record(format!("{result} and {rest}"));
    }

    fn half_excep(&self, holder: ExceptionHolder<halver::HalfError>) {
        match holder.exception() {
            halver::HalfError::Mismatch(Mismatch { what }) => self.record(format!("Mismatch {what}")),
            halver::HalfError::System(error) => self.record(error.to_string()),
        }
    }

    fn refuse(&self) {
        self.record("no exception".to_owned());
    }

    fn refuse_excep(&self, holder: ExceptionHolder<SystemException>) {
        self.record(format!("{} {}", holder.exception().kind().name(), holder.exception().minor()));
    }
}

fn handler_result(send: impl FnOnce(Arc<dyn AmiHalverHandler>) -> Result<(), SystemException>) -> Result<String> {
    let (sender, receiver) = mpsc::channel();
    send(Arc::new(RecordingHandler(Mutex::new(sender))))?;
    receiver.recv_timeout(TIME_LIMIT).context("the handler was not called")
}

fn asynchronous(suite: &mut Suite<'_>, halver: &Halver) {
    suite.case("async/result", || {
        equal(handler_result(|handler| halver.sendc_half(Some(handler), -12))?.as_str(), "-6 and -6")
    });
    suite.case("async/exception", || {
        equal(handler_result(|handler| halver.sendc_half(Some(handler), 5))?.as_str(), "Mismatch odd")
    });
    suite.case("async/system", || {
        equal(handler_result(|handler| halver.sendc_refuse(Some(handler), 9))?.as_str(), "DATA_CONVERSION 9")
    });
    suite.case("async/poll", || {
        let pollers: Vec<_> = (0..20).map(|half| halver.sendp_half(2 * half)).collect();
        (0..).zip(pollers).try_for_each(|(half, poller)| equal(poller.half(30_000)?, (half, half)))
    });
    suite.case("async/poll-exception", || match halver.sendp_half(7).half(30_000) {
        Err(halver::HalfError::Mismatch(Mismatch { what })) => equal(what.as_str(), "odd"),
        other => bail!("no exception, or another one: {other:?}"),
    });
}

fn equal<T: PartialEq<U> + Debug, U: Debug>(seen: T, expected: U) -> Result<()> {
    ensure!(seen == expected, "expected {expected:?}, saw {seen:?}");
    Ok(())
}
