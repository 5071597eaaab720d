//! The service contexts that are sent once per connection: code sets, and the client's listen points.

use std::borrow::Cow;

use spandrel_cdr::GiopVersion;
use spandrel_connection::SentContexts;
use spandrel_giop::ServiceContext;
use spandrel_sync::Arc;

use crate::{
    Orb,
    client::{ClientConnection, destination::Destination},
    orb::server_side::NothingToSend,
};

/// The contexts that a request carries because no request before it has.
#[derive(Debug)]
pub(crate) struct ConnectionContexts<'d> {
    pub(crate) contexts: Cow<'d, [ServiceContext]>,
    pub(crate) sent: SentContexts,
}

impl<'d> ConnectionContexts<'d> {
    /// Returns the contexts for a request to this destination.
    #[cold]
    pub(crate) fn new(orb: &Orb, connection: &Arc<ClientConnection>, destination: &'d Destination) -> Self {
        let sent = connection.sent_contexts();
        let mut contexts = match sent.contains(SentContexts::CODE_SETS) {
            false => Cow::Borrowed(destination.code_sets()),
            true => Cow::default(),
        };
        let mut will_be_sent = SentContexts::CODE_SETS;
        if !sent.contains(SentContexts::LISTEN_POINTS)
            && let Ok(points) = announce(orb, connection, destination)
        {
            points.into_iter().for_each(|context| contexts.to_mut().push(context));
            will_be_sent = SentContexts::ALL;
        }
        Self { contexts, sent: will_be_sent }
    }

    /// Marks the contexts as sent, after the request was written.
    pub(crate) fn mark_sent(&self, connection: &ClientConnection) {
        connection.mark_sent(self.sent);
    }
}

/// Returns the listen points for the next request to this destination, if there are any. The connection
/// accepts requests from then on.
///
/// # Errors
/// [`NothingToSend`] if a later request may carry some.
fn announce(
    orb: &Orb,
    connection: &Arc<ClientConnection>,
    destination: &Destination,
) -> Result<Option<ServiceContext>, NothingToSend> {
    if !orb.is_bidirectional() {
        return Ok(None);
    }
    if destination.template.wire().version < GiopVersion::V1_2 {
        return Err(NothingToSend);
    }
    // Without an adapter there are no references by which the peer could call back.
    orb.server_side().ok_or(NothingToSend)?.announce(orb, connection)
}
