//! The server: a desk that calls its clients' bells.

use std::thread;

use spandrel::{CompletionStatus, Orb, Poa, SystemException, diagnostics::statistics::Event};

use crate::callbacks_idl::{Bell, Desk, DeskServant, DeskSkeleton, bell::DeclineError};

/// Calls back the bells that it receives.
struct DeskServer {
    orb: Orb,
}

/// The bell, or BAD_PARAM if it is nil.
fn bell(who: Option<&Bell>) -> Result<&Bell, SystemException> {
    who.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No).with_detail("no bell"))
}

impl DeskServant for DeskServer {
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
                eprintln!("calling the bell failed: {exception}");
            }
        });
        Ok(())
    }

    fn opened(&self) -> Result<u32, SystemException> {
        let opened = self.orb.statistics().count(Event::ConnectionOpened);
        Ok(u32::try_from(opened).unwrap_or(u32::MAX))
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        self.orb.begin_shutdown()
    }
}

/// Activates a desk and returns its reference.
///
/// # Errors
/// If the ORB cannot listen.
pub fn serve(orb: &Orb) -> Result<String, SystemException> {
    let poa = Poa::root(orb)?;
    Ok(poa.activate(DeskSkeleton::new(DeskServer { orb: orb.clone() }))?.to_string())
}
