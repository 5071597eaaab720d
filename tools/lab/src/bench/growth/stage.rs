//! Two ORBs in this process that call each other over a socket.

use std::sync::Arc;
use std::task::Poll;

use spandrel::{ObjectRef, Orb, Poa, SystemException};

use crate::LabError;
use crate::mechanism::generated::growth::growing::{RefuseError, Refused};
use crate::mechanism::generated::growth::{
    Growing, GrowingServant, GrowingSkeleton, Late, LateAsyncServant, LateAsyncSkeleton,
};

/// The two ORBs, and references from one to the other.
pub(super) struct Stage {
    server: Orb,
    client: Orb,
    poa: Poa,
    pub(super) target: Growing,
    /// The same object as a local reference of the server.
    pub(super) inside: Growing,
    pub(super) late: Late,
    /// An object of the client, to be called back.
    pub(super) caller: Growing,
}

impl Stage {
    pub(super) fn build() -> Result<Self, LabError> {
        let (server, client) = (
            Orb::builder().build().map_err(LabError::call("make the ORB"))?,
            Orb::builder().build().map_err(LabError::call("make the ORB"))?,
        );
        let build = || {
            let poa = Poa::root(&server)?;
            let target = poa.activate(GrowingSkeleton::new(Object::new(&poa)))?;
            let late = poa.activate(LateAsyncSkeleton::new(AnsweringServant))?;
            let calling = Poa::root(&client)?;
            let caller = calling.activate(GrowingSkeleton::new(Object::new(&calling)))?;
            let seen = |object: &ObjectRef| client.reference(object.ior().clone());
            Ok(Self {
                target: Growing::unchecked_narrow(&seen(&target)),
                inside: Growing::unchecked_narrow(&target),
                late: Late::unchecked_narrow(&seen(&late)),
                caller: Growing::unchecked_narrow(&caller),
                poa,
                server: server.clone(),
                client: client.clone(),
            })
        };
        build().map_err(LabError::call("activate the objects"))
    }

    /// The number of objects of the server.
    pub(super) fn objects(&self) -> u64 {
        self.poa.active_objects() as u64
    }

    /// Waits until all one-ways have been executed.
    pub(super) fn settle(&self) -> Result<(), SystemException> {
        self.target.ping()
    }

    pub(super) fn end(self) -> Result<(), LabError> {
        let ended = self.client.shutdown().and_then(|()| self.server.shutdown());
        ended.map_err(LabError::call("shut down"))
    }
}

struct Object {
    poa: Poa,
    /// Its own reference, if another object created it.
    own: std::sync::OnceLock<ObjectRef>,
}

impl Object {
    fn new(poa: &Poa) -> Self {
        Self { poa: poa.clone(), own: std::sync::OnceLock::new() }
    }
}

impl GrowingServant for Object {
    fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn echo(&self, text: &str) -> Result<String, SystemException> {
        Ok(text.to_owned())
    }

    fn refuse(&self) -> Result<(), RefuseError> {
        Err(Refused { why: "it is asked to".to_owned() }.into())
    }

    fn note(&self, number: u32) -> Result<(), SystemException> {
        std::hint::black_box(number);
        Ok(())
    }

    fn another(&self) -> Result<Option<Growing>, SystemException> {
        let servant = Arc::new(Self::new(&self.poa));
        let object = self.poa.activate(GrowingSkeleton::new(Arc::clone(&servant)))?;
        _ = servant.own.set(object.clone());
        Ok(Some(Growing::unchecked_narrow(&object)))
    }

    fn leave(&self) -> Result<(), SystemException> {
        self.own.get().map_or(Ok(()), |own| self.poa.deactivate(own))
    }

    fn call_back(&self, caller: Option<&Growing>) -> Result<(), SystemException> {
        caller.map_or(Ok(()), Growing::ping)
    }
}

/// A servant with an asynchronous method.
struct AnsweringServant;

impl LateAsyncServant for AnsweringServant {
    async fn ping(&self) -> Result<(), SystemException> {
        let mut is_second = false;
        std::future::poll_fn(|cx| {
            if std::mem::replace(&mut is_second, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        Ok(())
    }
}
