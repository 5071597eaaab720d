//! Asynchronous calls among client interceptors (CORBA 3.3 Part 1, 16.3.7.2).
//!
//! To interceptors each leg of a call, from one sending to its outcome, is two requests: the first is over when it is on its way
//! (`send_request`, `receive_other`), the second asks for what has become of it (`send_poll`, and an ending point). The first leg's sending is
//! seen by the client's own thread, all else by the ORB's thread that runs tasks: never by one that reads for others.

use spandrel_giop::{ReplyStatus, ResponseFlags, ServiceContext, SystemException};
use spandrel_sync::{Arc, Mutex};

use super::asked::Asked;
use crate::{
    client::{Reply, ReplyKind},
    interception::{self, ClientFlow, Departure, Ending, Wanted},
    invocation::{Attempts, Verdict},
    object::Effective,
};

/// What interceptors know of a call.
#[derive(Debug, Default)]
pub(super) struct Leg {
    /// What it has with it; made by the client's thread.
    departure: Option<Departure>,
    /// It is on its way there, and its outcome not yet known.
    open: Option<Target>,
    /// It will not arrive there.
    is_lost: bool,
}

/// Where the object is, if not where its reference says, and by which profile it is reached.
type Target = (Effective, usize);

impl Leg {
    /// What interceptors add to the request.
    pub(super) fn contexts(&self) -> &[ServiceContext] {
        self.departure.as_ref().map_or(&[], Departure::contexts)
    }

    /// It will not arrive where it is on its way to.
    pub(super) fn lose(&mut self) {
        self.is_lost = true;
    }

    /// True if there is somebody to tell of the outcome.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// It is about to be sent; false if it is to be sent elsewhere instead.
    ///
    /// # Errors
    /// What it ends with instead.
    pub(super) fn begin(
        &mut self,
        asked: &Asked,
        attempts: &mut Attempts,
        index: usize,
    ) -> Result<bool, SystemException> {
        let object = &asked.object;
        if !object.orb().has_client_interceptors() {
            return Ok(true);
        }
        let is_lost = std::mem::take(&mut self.is_lost);
        if self.is_open() && !is_lost {
            // It has waited for a connection.
            return Ok(true);
        }
        if !self.end(asked, attempts, retry, None)? {
            return Ok(false);
        }
        let departure = match self.departure.take() {
            None => Departure::of_thread(object),
            Some(before) => before.again(object),
        };
        let target = (object.effective()?.1, index);
        let mut flow = ClientFlow::new(object, &asked.operation, wanted(asked), departure, target.clone());
        let started = flow.send_request();
        self.departure = Some(flow.departure().clone());
        // Control returns to the client now.
        let sent = started.and_then(|()| flow.end(Ending::Other(interception::ReplyStatus::Successful, None), None));
        match sent {
            Ok(()) => self.open = Some(target),
            Err(ending) => object.obey(ending, attempts)?,
        }
        Ok(self.is_open())
    }

    /// Tells of the outcome; false if it is to be sent elsewhere instead.
    fn end(
        &mut self,
        asked: &Asked,
        attempts: &mut Attempts,
        ending: impl FnOnce() -> Ending,
        reply: Option<&Reply>,
    ) -> Result<bool, SystemException> {
        let (Some(target), Some(departure)) = (self.open.take(), &self.departure) else {
            return Ok(true);
        };
        let mut flow = ClientFlow::new(&asked.object, &asked.operation, wanted(asked), departure.clone(), target);
        match flow.send_poll().and_then(|()| flow.end(ending(), reply)) {
            Ok(()) => Ok(true),
            Err(changed) => asked.object.obey(changed, attempts).map(|()| false),
        }
    }

    /// A reply has come, of which this is thought.
    ///
    /// # Errors
    /// What the call ends with.
    pub(super) fn judge(
        &mut self,
        asked: &Asked,
        attempts: &mut Attempts,
        reply: &Reply,
        judged: Result<Verdict, SystemException>,
    ) -> Result<Verdict, SystemException> {
        let object = &asked.object;
        let ending = || match &judged {
            Err(exception) => Ending::system(exception.clone()),
            Ok(Verdict::AskAgain) => object.forwarded_by(reply),
            Ok(Verdict::Answer) if reply.kind == ReplyKind::Reply(ReplyStatus::UserException) => {
                Ending::user(reply, object)
            }
            Ok(Verdict::Answer) if wanted(asked).1 => Ending::Other(interception::ReplyStatus::Successful, None),
            Ok(Verdict::Answer) => Ending::Reply,
        };
        if self.end(asked, attempts, ending, Some(reply))? { judged } else { Ok(Verdict::AskAgain) }
    }

    /// There will be no reply.
    ///
    /// # Errors
    /// What the call ends with, unless it is to be sent once more.
    pub(super) fn fail(
        &mut self,
        asked: &Asked,
        attempts: &mut Attempts,
        exception: SystemException,
    ) -> Result<(), SystemException> {
        let as_it_was = self.end(asked, attempts, || Ending::system(exception.clone()), None)?;
        if as_it_was { Err(exception) } else { Ok(()) }
    }
}

/// Has the thread for it go on with the call, if interceptors are to be told: this one may be reading for others.
pub(super) fn elsewhere<C: Send + Sync + 'static>(
    asked: &Asked,
    call: &Arc<C>,
    go_on: impl FnOnce(Arc<C>) + Send + 'static,
) {
    let orb = asked.object.orb();
    if !orb.has_client_interceptors() {
        return go_on(Arc::clone(call));
    }
    let job = Arc::new(Mutex::new(Some(go_on)));
    let (call, task) = (Arc::clone(call), Arc::clone(&job));
    let run = move || {
        let go_on = task.lock().take();
        if let Some(go_on) = go_on {
            go_on(Arc::clone(&call));
        }
    };
    let here = run.clone();
    if orb.station().run(Box::pin(async move { run() })).is_err() {
        // The ORB ends, and reads no more.
        here();
    }
}

fn wanted(asked: &Asked) -> Wanted {
    (asked.response, asked.response != ResponseFlags::TWO_WAY)
}

fn retry() -> Ending {
    Ending::Other(interception::ReplyStatus::TransportRetry, None)
}
