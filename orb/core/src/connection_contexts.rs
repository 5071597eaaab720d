//! The service contexts that are sent once per connection: code sets, and the client's listen points.

use std::borrow::Cow;

#[cfg(feature = "server")]
use spandrel_cdr::GiopVersion;
use spandrel_connection::SentContexts;
#[cfg(feature = "server")]
use spandrel_giop::ListenPoint;
use spandrel_giop::ServiceContext;
use spandrel_sync::Arc;

#[cfg(feature = "server")]
use crate::server::Callbacks;
use crate::{Orb, client::ClientConnection, destination::Destination};

/// The contexts that a request carries because no request before it has.
#[derive(Debug)]
pub(crate) struct ConnectionContexts<'d> {
    pub(crate) contexts: Cow<'d, [ServiceContext]>,
    sent: SentContexts,
}

impl<'d> ConnectionContexts<'d> {
    /// Returns the contexts for a request to this destination.
    #[cold]
    pub(crate) fn new(orb: &Orb, connection: &Arc<ClientConnection>, destination: &'d Destination) -> Self {
        let sent = connection.sent_contexts();
        #[cfg_attr(not(feature = "server"), allow(unused_mut, reason = "only servers have points to add"))]
        let mut contexts = match sent.contains(SentContexts::CODE_SETS) {
            false => Cow::Borrowed(destination.code_sets()),
            true => Cow::default(),
        };
        let mut will_be_sent = SentContexts::CODE_SETS;
        if !sent.contains(SentContexts::LISTEN_POINTS) {
            #[cfg(feature = "server")]
            if let Ok(points) = announce(orb, connection, destination) {
                points.into_iter().for_each(|context| contexts.to_mut().push(context));
                will_be_sent = SentContexts::ALL;
            }
            #[cfg(not(feature = "server"))]
            {
                let _ = (orb, connection);
                will_be_sent = SentContexts::ALL;
            }
        }
        Self { contexts, sent: will_be_sent }
    }

    /// Marks the contexts as sent, after the request was written.
    pub(crate) fn mark_sent(&self, connection: &ClientConnection) {
        connection.mark_sent(self.sent);
    }

    /// Marks all but the code sets. The server has to know these before it reads a request without them.
    #[cfg(feature = "asynchronous")]
    pub(crate) fn mark_listen_points_sent(&self, connection: &ClientConnection) {
        connection.mark_sent(self.sent.without(SentContexts::CODE_SETS));
    }
}

/// There is nothing to announce yet.
#[cfg(feature = "server")]
#[derive(Debug)]
struct NothingToSend;

/// Returns the listen points for the next request to this destination, if there are any. The connection
/// accepts requests from then on.
///
/// # Errors
/// [`NothingToSend`] if a later request may carry some.
#[cfg(feature = "server")]
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
    // Without references the peer cannot call back.
    let published = orb.published_already().ok_or(NothingToSend)?;
    let points: Vec<_> = published
        .hosts
        .into_iter()
        .map(|(host, port)| ListenPoint { host, port })
        .filter(|point| point.port != 0)
        .collect();
    if points.is_empty() {
        return Ok(None);
    }
    let context = ListenPoint::to_context(&points).map_err(|_| NothingToSend)?;
    // Before the peer may send requests.
    if let Err(exception) = orb.client_reactor().register_connection(connection) {
        tracing::warn!(%exception, "a connection cannot be registered, and is not bidirectional");
        return Err(NothingToSend);
    }
    connection.accept_callbacks(|| Callbacks::of(orb, connection));
    Ok(Some(context))
}
