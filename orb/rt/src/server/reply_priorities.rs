//! The priority in replies.

use spandrel_orb::Policy;
use spandrel_orb::interception::{IfPresent, Interceptor, Interruption, ServerRequestInfo, ServerRequestInterceptor};

use crate::contexts::RT_CORBA_PRIORITY;
use crate::policies::{PriorityModel, PriorityModelPolicy};

/// Puts the priority of a request into its reply, for objects with CLIENT_PROPAGATED: the client's ORB is told by the
/// context RTCorbaPriority at which priority the reply is to be processed.
///
/// An ORB has it as an interceptor, because its clients here do not need the context: the thread that waits for the reply
/// has the priority. A client reads it in an interceptor, by
/// [`contexts::find_priority`](crate::contexts::find_priority).
///
/// ```
/// use spandrel_orb::Orb;
/// use spandrel_rt::ReplyPriorities;
///
/// let orb = Orb::builder().server_request_interceptor(ReplyPriorities)?.build()?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplyPriorities;

impl Interceptor for ReplyPriorities {}

impl ServerRequestInterceptor for ReplyPriorities {
    fn receive_request(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        // A request without the context has a reply without it.
        let Ok(context) = info.request_service_context(RT_CORBA_PRIORITY) else { return Ok(()) };
        let model = info.server_policy(PriorityModelPolicy::POLICY_TYPE).ok();
        let model = model.as_ref().and_then(Policy::value::<PriorityModelPolicy>).map(|policy| policy.model);
        if model == Some(PriorityModel::ClientPropagated) {
            info.add_reply_service_context(context, IfPresent::Replace)?;
        }
        Ok(())
    }
}
