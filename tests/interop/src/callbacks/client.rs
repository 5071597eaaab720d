//! The client: it calls the desk, which calls the client's bell.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use spandrel::{CompletionStatus, Orb, Poa, SystemException};

use crate::callbacks_idl::{Bell, BellServant, BellSkeleton, Declined, Desk, bell::DeclineError};
use crate::suite::{Suite, Tally};

/// The timeout of a callback that follows the reply.
const RING_TIMEOUT: Duration = Duration::from_secs(10);

/// A case; its error describes the failure.
type Case = fn(&DeskClient) -> Result<()>;

/// Records the callbacks.
#[derive(Default)]
struct Rings {
    numbers: Mutex<Vec<i32>>,
    rung: Condvar,
}

impl BellServant for std::sync::Arc<Rings> {
    fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        Ok(a.wrapping_add(b))
    }

    fn echo(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(data.to_vec())
    }

    fn decline(&self, why: &str) -> Result<(), DeclineError> {
        Err(Declined { why: why.to_owned() }.into())
    }

    fn ring(&self, number: i32) -> Result<(), SystemException> {
        self.numbers.lock().expect("no thread panics with the lock held").push(number);
        self.rung.notify_all();
        Ok(())
    }

    fn rung(&self) -> Result<i32, SystemException> {
        let numbers = std::mem::take(&mut *self.numbers.lock().expect("no thread panics with the lock held"));
        if !numbers.iter().zip(0..).all(|(number, expected)| *number == expected) {
            return Err(SystemException::bad_param(0, CompletionStatus::No).with_detail("out of order"));
        }
        Ok(i32::try_from(numbers.len()).unwrap_or(i32::MAX))
    }

    fn recurse(&self, other: Option<&Desk>, own: Option<&Bell>, depth: i32) -> Result<i32, SystemException> {
        let other = other.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No))?;
        if depth > 0 { Ok(other.recurse(own, Some(other), depth - 1)? + 1) } else { Ok(0) }
    }
}

/// The client of a desk, and its bell.
struct DeskClient {
    desk: Desk,
    bell: Bell,
    rings: std::sync::Arc<Rings>,
}

impl DeskClient {
    fn new(orb: &Orb, reference: &str) -> Result<Self> {
        // The connection is opened before the client has an object.
        let desk = Desk::narrow(&orb.string_to_object(reference)?).context("the object is not a desk")?;
        let rings = std::sync::Arc::<Rings>::default();
        let bell = Poa::root(orb)?.activate(BellSkeleton::new(std::sync::Arc::clone(&rings)))?;
        Ok(Self { desk, bell: Bell::narrow(&bell)?, rings })
    }

    fn add(&self) -> Result<()> {
        for number in 0..100 {
            ensure!(self.desk.have_add(Some(&self.bell), number, 1)? == number + 1, "a wrong sum");
        }
        Ok(())
    }

    fn echo(&self) -> Result<()> {
        for len in [0, 1, 1000, 100_000, 1 << 20] {
            let data: Vec<u8> = (0..=250).cycle().take(len).collect();
            ensure!(self.desk.have_echo(Some(&self.bell), &data)? == data, "other octets of {len}");
        }
        Ok(())
    }

    fn decline(&self) -> Result<()> {
        ensure!(self.desk.have_declined(Some(&self.bell), "too late")? == "too late", "another reason");
        Ok(())
    }

    fn rings_in_order(&self) -> Result<()> {
        for count in [0, 1, 200] {
            ensure!(self.desk.have_rung(Some(&self.bell), count)? == count, "wrong number of rings");
        }
        Ok(())
    }

    fn nested_calls(&self) -> Result<()> {
        for depth in [0, 1, 2, 10] {
            let reached = self.desk.recurse(Some(&self.bell), Some(&self.desk), depth)?;
            ensure!(reached == depth, "depth {reached}, expected {depth}");
        }
        Ok(())
    }

    fn ring_while_idle(&self) -> Result<()> {
        self.desk.later(Some(&self.bell), 0)?;
        let numbers = self.rings.numbers.lock().expect("no thread panics with the lock held");
        let waited = self.rings.rung.wait_timeout_while(numbers, RING_TIMEOUT, |numbers| numbers.is_empty());
        let (mut numbers, _) = waited.expect("no thread panics with the lock held");
        ensure!(std::mem::take(&mut *numbers) == [0], "the bell was not rung");
        Ok(())
    }

    fn no_connection_from_the_server(&self) -> Result<()> {
        let opened = self.desk.opened()?;
        ensure!(opened == 0, "the server has opened {opened} connections");
        Ok(())
    }
}

/// Runs all cases against the desk and shuts it down; `say` receives a line for each.
///
/// # Errors
/// If the reference does not denote a desk.
pub fn run(orb: &Orb, reference: &str, say: &mut dyn FnMut(&str)) -> Result<Tally> {
    let client = DeskClient::new(orb, reference)?;
    let cases: [(&str, Case); 7] = [
        ("add", DeskClient::add),
        ("echo", DeskClient::echo),
        ("decline", DeskClient::decline),
        ("ring", DeskClient::rings_in_order),
        ("nested", DeskClient::nested_calls),
        ("idle", DeskClient::ring_while_idle),
        ("one_connection", DeskClient::no_connection_from_the_server),
    ];
    let mut suite = Suite::new("", say);
    for (name, case) in cases {
        suite.case(&format!("callbacks/{name}"), || case(&client));
    }
    client.desk.shutdown()?;
    Ok(suite.tally)
}
