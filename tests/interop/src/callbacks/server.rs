//! The server's side: a desk that rings its clients' bells.

use std::thread;

use spandrel::{CompletionStatus, Orb, Poa, SystemException, statistics::Event};

use crate::callbacks_idl::{Bell, Desk, DeskServant, DeskSkeleton, bell::DeclineError};

/// Calls whom it is told to.
struct Counter {
    orb: Orb,
}

/// The bell, which is not to be nil.
fn bell(who: Option<&Bell>) -> Result<&Bell, SystemException> {
    who.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No).with_detail("no bell"))
}

impl DeskServant for Counter {
    fn have_add(&self, who: Option<&Bell>, a: i32, b: i32) -> Result<i32, SystemException> {
        bell(who)?.add(a, b)
    }

    fn have_echo(&self, who: Option<&Bell>, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        bell(who)?.echo(data)
    }

    fn have_declined(&self, who: Option<&Bell>, why: &str) -> Result<String, SystemException> {
        match bell(who)?.decline(why) {
            Err(DeclineError::Declined(declined)) => Ok(declined.why),
            Err(DeclineError::System(exception)) => Err(exception),
            Ok(()) => Ok(String::new()),
        }
    }

    fn have_rung(&self, who: Option<&Bell>, count: i32) -> Result<i32, SystemException> {
        let bell = bell(who)?;
        (0..count).try_for_each(|number| bell.ring(number))?;
        bell.rung()
    }

    fn recurse(&self, who: Option<&Bell>, own: Option<&Desk>, depth: i32) -> Result<i32, SystemException> {
        match depth {
            1.. => Ok(bell(who)?.recurse(own, who, depth - 1)? + 1),
            _ => Ok(0),
        }
    }

    fn later(&self, who: Option<&Bell>, number: i32) -> Result<(), SystemException> {
        let bell = bell(who)?.clone();
        thread::spawn(move || {
            if let Err(exception) = bell.ring(number) {
                eprintln!("the bell cannot be rung: {exception}");
            }
        });
        Ok(())
    }

    fn opened(&self) -> Result<u32, SystemException> {
        let opened = self.orb.statistics().count(Event::ConnectionOpened);
        Ok(u32::try_from(opened).unwrap_or(u32::MAX))
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        self.orb.shutdown(false)
    }
}

/// Makes a desk; its reference.
///
/// # Errors
/// If the ORB cannot listen.
pub fn serve(orb: &Orb) -> Result<String, SystemException> {
    let poa = Poa::root(orb)?;
    Ok(poa.activate(DeskSkeleton::new(Counter { orb: orb.clone() }))?.to_string())
}
