//! The interception of one request on the server: the order of the interceptors, and their information.

use spandrel_giop::{CompletionStatus, RequestHeader, ResponseFlags, ServiceContext, SystemException};
use spandrel_sync::{Arc, Mutex};
use spandrel_transport::Address;

use super::{LocateRequestInfo, ObjectInfo, Point, RequestRecord, ServerRequestInfo, ServerRequestInterceptor};
use crate::{
    Orb, SupportedInterfaces, Target,
    interception::{
        Interruption, RequestOutcome, SlotTable,
        flow::{self, FlowStack},
        registry::{exchange_thread_slots, no_slots, server_interceptors, thread_slots},
    },
};

/// The data of a request that interceptors may read at the present point.
#[expect(missing_debug_implementations, reason = "a target has none")]
pub struct RequestView<'r> {
    /// The decoded header: id, operation and service contexts.
    pub header: &'r RequestHeader<'r>,
    /// The response that the client still expects.
    pub response: ResponseFlags,
    /// The target, once the adapter has found it.
    pub target: Option<&'r dyn Target>,
    /// The address of the peer; `None` for a caller in this ORB.
    pub peer: Option<&'r Address>,
}

/// Calls the points of a LocateRequest for the object with this key.
///
/// # Errors
/// The exception of an interceptor.
pub fn receive_locate_request(orb: &Orb, key: &[u8], peer: Option<&Address>) -> Result<(), SystemException> {
    let info = LocateRequestInfo { orb, key, peer };
    let receive = |interceptor: &Arc<dyn ServerRequestInterceptor>| {
        flow::catch_panic(|| interceptor.receive_locate_request(&info).map_err(Interruption::from))
    };
    match server_interceptors(orb).iter().try_for_each(receive).map_err(Interruption::at_start) {
        Err(Interruption::System(exception)) => Err(exception),
        _ => Ok(()),
    }
}

/// A request on its way through the interceptors, from its arrival to its answer.
#[derive(Debug)]
pub struct ServerFlow {
    orb: Orb,
    /// The record of the request; taken out while interceptors run.
    record: Mutex<RequestRecord>,
}

impl ServerFlow {
    /// Begins the flow of a request: no point was called yet.
    pub fn new(orb: &Orb) -> Arc<Self> {
        let (request_id, slots) = (orb.interception().request_id(), no_slots(orb));
        Arc::new(Self {
            orb: orb.clone(),
            record: Mutex::new(RequestRecord { request_id, slots, ..RequestRecord::default() }),
        })
    }

    /// Calls the starting points.
    ///
    /// # Errors
    /// The exception or forwarding of an interceptor. Those before it are on the flow stack, and have their
    /// ending points called.
    pub fn receive_request_service_contexts(&self, view: &RequestView<'_>) -> Result<(), Interruption> {
        let mut info = self.info(Point::ReceiveServiceContexts, view, None);
        let mut outcome = Ok(());
        for interceptor in server_interceptors(&self.orb) {
            outcome = flow::catch_panic(|| interceptor.receive_request_service_contexts(&mut info));
            if outcome.is_err() {
                break;
            }
            info.record.height += 1;
        }
        self.store(info);
        outcome.map_err(Interruption::at_start)
    }

    /// Calls the intermediate points, after the servant was found.
    ///
    /// # Errors
    /// The exception or forwarding of an interceptor.
    pub fn receive_request(
        &self,
        view: &RequestView<'_>,
        servant: &dyn SupportedInterfaces,
    ) -> Result<(), Interruption> {
        let mut info = self.info(Point::ReceiveRequest, view, Some(servant));
        info.record.object = view.target.map(|target| ObjectInfo {
            object_id: target.object_id().to_vec(),
            adapter_id: target.adapter_id().to_vec(),
            adapter_name: target.adapter_name(),
        });
        let interceptors = server_interceptors(&self.orb);
        let on_stack = interceptors.iter().take(info.record.height);
        let outcome = on_stack
            .into_iter()
            .try_for_each(|interceptor| flow::catch_panic(|| interceptor.receive_request(&mut info)));
        self.store(info);
        outcome.map_err(Interruption::at_start)
    }

    /// Calls the ending points; returns the outcome, and the contexts of the reply.
    ///
    /// # Errors
    /// The new outcome of the request, if an interceptor has changed it.
    pub fn end(
        &self,
        view: &RequestView<'_>,
        ending: RequestOutcome,
    ) -> (Result<(), RequestOutcome>, Vec<ServiceContext>) {
        let mut info = self.info(Point::SendReply, view, None);
        if info.record.is_in_thread {
            // With the changes by the servant (16.4.4.2).
            info.record.slots = thread_slots(&self.orb);
        }
        info.ending = ending;
        let is_changed = flow::unwind(&mut info);
        let outcome = if is_changed { Err(info.ending.clone()) } else { Ok(()) };
        let contexts = std::mem::take(&mut info.record.reply_contexts);
        self.store(info);
        (outcome, contexts)
    }

    /// Gives the calling thread the request's slots for the lifetime of the result.
    pub fn lend_slots(&self) -> LentSlots<'_> {
        let mut record = self.record.lock();
        record.is_in_thread = true;
        let slots = record.slots.clone();
        drop(record);
        LentSlots { before: exchange_thread_slots(&self.orb, slots), flow: self }
    }

    fn info<'r>(
        &'r self,
        point: Point,
        view: &RequestView<'r>,
        servant: Option<&'r dyn SupportedInterfaces>,
    ) -> ServerRequestInfo<'r> {
        let record = std::mem::take(&mut *self.record.lock());
        let RequestView { header, response, target, peer } = *view;
        ServerRequestInfo {
            point,
            orb: &self.orb,
            header,
            response,
            target,
            peer,
            servant,
            record,
            ending: RequestOutcome::Reply,
        }
    }

    fn store(&self, info: ServerRequestInfo<'_>) {
        *self.record.lock() = info.record;
    }
}

/// The time in which a thread has a request's slots.
#[derive(Debug)]
pub struct LentSlots<'f> {
    before: SlotTable,
    flow: &'f ServerFlow,
}

impl Drop for LentSlots<'_> {
    fn drop(&mut self) {
        let slots = exchange_thread_slots(&self.flow.orb, std::mem::take(&mut self.before));
        let mut record = self.flow.record.lock();
        record.is_in_thread = false;
        let before = std::mem::replace(&mut record.slots, slots);
        drop(record);
        // Their destructors may run code of the application.
        drop(before);
    }
}

impl Interruption {
    /// Exceptions before the servant has run have COMPLETED_NO (16.3.9.1, 16.3.9.2).
    fn at_start(self) -> Self {
        match self {
            Self::System(exception) => Self::System(exception.with_completed(CompletionStatus::No)),
            forward => forward,
        }
    }
}

impl FlowStack for ServerRequestInfo<'_> {
    fn height(&mut self) -> &mut usize {
        &mut self.record.height
    }

    fn ending(&mut self) -> &mut RequestOutcome {
        &mut self.ending
    }

    fn call(&mut self, index: usize) -> Result<(), Interruption> {
        let interceptor = &server_interceptors(self.orb)[index];
        match &self.ending {
            RequestOutcome::Reply => {
                self.point = Point::SendReply;
                Ok(interceptor.send_reply(self)?)
            }
            RequestOutcome::Exception(_) => {
                self.point = Point::SendException;
                interceptor.send_exception(self)
            }
            RequestOutcome::Other(..) => {
                self.point = Point::SendOther;
                interceptor.send_other(self)
            }
        }
    }
}
