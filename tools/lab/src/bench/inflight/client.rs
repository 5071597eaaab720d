//! Our client: calls in flight by futures, all polled by one thread, which waits for them by [`Orb::block_on`].

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, Write};
use std::time::{Duration, Instant};

use spandrel::{Orb, SystemException};
use spandrel_measure::Times;
use spandrel_measure::histogram::Histogram;

use super::contender::MOST_IN_FLIGHT;
use super::executor::join_all;
use crate::LabError;
use crate::bench::driver::client::Report;
use crate::call_times::{CallTimes, Printed, SLOWEST};
use crate::mechanism::generated::growth::Late;

/// Calls the object with this reference, by commands on standard input.
///
/// # Errors
/// If a call fails, or a line is not a command.
pub(crate) fn call(reference: &str) -> Result<(), LabError> {
    let orb = Orb::builder()
        .pending_requests(MOST_IN_FLIGHT as usize)
        .connections_per_peer(1)
        .build()
        .map_err(LabError::call("make the ORB"))?;
    let target = orb.string_to_object(reference).map_err(LabError::call("use the server's reference"))?;
    // Its interface has `ping`, too.
    let target = Late::unchecked_narrow(&target);
    target.ping().map_err(LabError::call("call the server"))?;
    print_line("ready")?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(LabError::io("listen to the parent"))?;
        let Some((in_flight, time)) = parse(&line) else {
            return Err(LabError::Protocol { role: "parent".to_owned(), found: line });
        };
        let report = run(&orb, &target, in_flight, time).map_err(LabError::call("call the server"))?;
        print_line(&serde_json::to_string(&report).expect("numbers have a text form"))?;
    }
    orb.shutdown().map_err(LabError::call("shut the client down"))
}

fn print_line(line: &str) -> Result<(), LabError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(LabError::io("speak to the parent"))
}

/// The number of calls in flight, and for how long.
fn parse(line: &str) -> Option<(u32, Duration)> {
    let (in_flight, millis) = line.trim().split_once(' ')?;
    Some((in_flight.parse().ok()?, Duration::from_millis(millis.parse().ok()?)))
}

fn run(orb: &Orb, target: &Late, in_flight: u32, time: Duration) -> Result<Report, SystemException> {
    let start = Instant::now();
    let calls = Calls { nanos: RefCell::new(Histogram::new(SLOWEST)), last: Cell::new(start), end: start + time };
    if in_flight == super::SEQUENTIAL {
        let mut before = start;
        while before < calls.end {
            target.ping()?;
            before = calls.record(before);
        }
    } else {
        // Each future makes one call after the other.
        let call = async || {
            let mut before = Instant::now();
            while before < calls.end {
                target.ping_async().await?;
                before = calls.record(before);
            }
            Ok(())
        };
        orb.block_on(join_all((0..in_flight).map(|_| call()))).into_iter().collect::<Result<(), SystemException>>()?;
    }
    let nanos = calls.nanos.into_inner();
    let seconds = (calls.last.get() - start).as_secs_f64();
    let each = Times::of(&nanos, Duration::from_micros(1)).unwrap_or_default();
    Ok(Report {
        times: Printed::from_times(&CallTimes { calls: nanos.count(), seconds, each }),
        seconds,
        fairness: None,
    })
}

/// The calls of one run.
struct Calls {
    nanos: RefCell<Histogram>,
    last: Cell<Instant>,
    end: Instant,
}

impl Calls {
    /// Records a call that ends now; returns the time.
    fn record(&self, before: Instant) -> Instant {
        let now = Instant::now();
        self.nanos.borrow_mut().record((now - before).as_nanos() as u64);
        self.last.set(now);
        now
    }
}
