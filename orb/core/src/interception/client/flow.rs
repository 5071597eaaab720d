//! The interception of one attempt of a call: the order of the interceptors, and their information.
//!
//! `invocation::points` decides on the consequences for the call: an exception, a forwarding, or a retry.

use spandrel_cdr::Limits;
use spandrel_giop::{ReplyHeader, ServiceContext};

use super::{ClientRequestInfo, ClientRequestInterceptor, OutgoingContexts, Point, ResponseRequest};
use crate::{
    ObjectRef,
    client::Reply,
    interception::{
        Interruption, RaisedException, RequestOutcome,
        dynamic::{self, UndecodedResult},
        exception::ExceptionOctets,
        flow::{self, FlowStack},
        registry::{client_interceptors, thread_slots},
    },
    reference::object::EffectiveReference,
};

impl OutgoingContexts {
    /// The data of a request by the calling thread, with a copy of its slots (16.4.4.1).
    pub(crate) fn of_thread(object: &ObjectRef) -> Self {
        let orb = object.orb();
        let (request_id, slots) = (orb.interception().request_id(), thread_slots(orb));
        Self { request_id, contexts: Vec::new(), slots, description: dynamic::take() }
    }

    /// The data of the same request when it is sent again: a new request with the same slots (16.3.6.5).
    pub(crate) fn for_retry(&self, object: &ObjectRef) -> Self {
        let (slots, description) = (self.slots.clone(), self.description.clone());
        Self { request_id: object.orb().interception().request_id(), contexts: Vec::new(), slots, description }
    }

    /// Adds contexts before interceptors do.
    pub(crate) fn extend(&mut self, contexts: Vec<ServiceContext>) {
        self.contexts.extend(contexts);
    }

    /// The contexts that interceptors add to the request.
    pub(crate) fn contexts(&self) -> &[ServiceContext] {
        &self.contexts
    }
}

/// A request on its way through the interceptors.
#[derive(Debug)]
pub(crate) struct ClientFlow<'r> {
    info: ClientRequestInfo<'r>,
    /// The number of interceptors on the flow stack.
    height: usize,
}

impl<'r> ClientFlow<'r> {
    /// A request to the object, which may be `effective`ly elsewhere, by the profile of this number.
    pub(crate) fn new(
        target: &'r ObjectRef,
        operation: &'r str,
        response_request: ResponseRequest,
        outgoing: OutgoingContexts,
        (effective, profile): (EffectiveReference, usize),
    ) -> Self {
        let (ending, reply_contexts) = (RequestOutcome::Reply, Vec::new());
        let point = Point::SendRequest;
        let info = ClientRequestInfo {
            point,
            operation,
            response_request,
            target,
            effective,
            profile,
            outgoing,
            reply_contexts,
            returned: None,
            ending,
        };
        Self { info, height: 0 }
    }

    /// Calls the starting points of a request that is to be sent.
    ///
    /// # Errors
    /// The outcome that the request has instead. The ending points were called.
    pub(crate) fn send_request(&mut self) -> Result<(), RequestOutcome> {
        self.start(Point::SendRequest, |interceptor, info| interceptor.send_request(info))
    }

    /// Continues a request whose starting points were all called.
    pub(crate) fn resume_request(&mut self) -> Result<(), RequestOutcome> {
        self.height = client_interceptors(self.info.target.orb()).len();
        Ok(())
    }

    /// Calls the starting points of a poll.
    ///
    /// # Errors
    /// As [`send_request`](Self::send_request).
    pub(crate) fn send_poll(&mut self) -> Result<(), RequestOutcome> {
        self.start(Point::SendPoll, |interceptor, info| Ok(interceptor.send_poll(info)?))
    }

    fn start(
        &mut self,
        point: Point,
        call: impl Fn(&dyn ClientRequestInterceptor, &mut ClientRequestInfo<'_>) -> Result<(), Interruption>,
    ) -> Result<(), RequestOutcome> {
        self.info.point = point;
        for interceptor in client_interceptors(self.info.target.orb()) {
            if let Err(interruption) = flow::catch_panic(|| call(&**interceptor, &mut self.info)) {
                self.info.ending = flow::interrupted_at_start(interruption);
                flow::unwind(self);
                return Err(self.info.ending.clone());
            }
            self.height += 1;
        }
        Ok(())
    }

    /// The data of the request, with the additions of interceptors.
    pub(crate) fn into_outgoing(self) -> OutgoingContexts {
        self.info.outgoing
    }

    /// Calls the ending points of the interceptors on the flow stack.
    ///
    /// # Errors
    /// The new outcome of the request, if an interceptor has changed it.
    pub(crate) fn end(&mut self, ending: RequestOutcome, reply: Option<&Reply>) -> Result<(), RequestOutcome> {
        if let Some(reply) = reply {
            self.info.reply_contexts = contexts_of(reply);
            self.info.returned = self.info.outgoing.description.is_some().then(|| UndecodedResult::of(reply));
        }
        self.info.ending = ending;
        if flow::unwind(self) { Err(self.info.ending.clone()) } else { Ok(()) }
    }
}

impl FlowStack for ClientFlow<'_> {
    fn height(&mut self) -> &mut usize {
        &mut self.height
    }

    fn ending(&mut self) -> &mut RequestOutcome {
        &mut self.info.ending
    }

    fn call(&mut self, index: usize) -> Result<(), Interruption> {
        let info = &mut self.info;
        let interceptor = &client_interceptors(info.target.orb())[index];
        match &info.ending {
            RequestOutcome::Reply => {
                info.point = Point::ReceiveReply;
                Ok(interceptor.receive_reply(info)?)
            }
            RequestOutcome::Exception(_) => {
                info.point = Point::ReceiveException;
                interceptor.receive_exception(info)
            }
            RequestOutcome::Other(..) => {
                info.point = Point::ReceiveOther;
                interceptor.receive_other(info)
            }
        }
    }
}

/// The contexts of a reply, whose header was read before.
fn contexts_of(reply: &Reply) -> Vec<ServiceContext> {
    let header = ReplyHeader::decode(&mut reply.message.decoder(Limits::default()));
    let contexts = header.iter().flat_map(|header| &header.service_contexts);
    contexts.map(|context| ServiceContext { id: context.id, data: context.data.to_vec() }).collect()
}

impl RequestOutcome {
    /// The outcome of a reply with a user exception.
    pub(crate) fn user(reply: &Reply, object: &ObjectRef) -> Self {
        let source = ExceptionOctets::Received(reply.message.clone());
        Self::Exception(RaisedException::user_exception(source, reply.body, reply.wire, object.orb()))
    }
}
