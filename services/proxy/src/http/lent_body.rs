//! Bodies of requests that their handler leaves unread.
//!
//! The next request of a connection begins behind the body. So a body that the handler did not read is dropped up to its
//! end, within limits. Beyond them the connection has to end, and its last response says so (RFC 9112, 9.6).

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::EXPECT;
use http_body_util::BodyExt as _;
use hyper::Request;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};

/// The most octets of a body that are dropped.
const MAX_DISCARDED: u64 = 1 << 20;
/// The longest wait for the end of such a body.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);

/// The body of a request, or nothing while the handler has it or after its end.
type Home = Arc<Mutex<Option<Incoming>>>;

/// A body that returns to its connection when the handler drops it.
struct LentBody {
    body: Option<Incoming>,
    home: Home,
}

/// The part of a body that the handler of its request has not read.
pub(super) struct UnreadBody {
    home: Option<Home>,
    /// Whether the client waits for an invitation before it sends the body.
    is_expecting: bool,
}

/// Gives the handler a request whose body returns.
pub(super) fn lend_body(request: Request<Incoming>) -> (Request<Body>, UnreadBody) {
    let is_expecting = request.headers().contains_key(EXPECT);
    if request.body().is_end_stream() {
        return (request.map(|_| Body::empty()), UnreadBody { home: None, is_expecting });
    }
    let home = Home::default();
    let request = request.map(|body| Body::new(LentBody { body: Some(body), home: Arc::clone(&home) }));
    (request, UnreadBody { home: Some(home), is_expecting })
}

impl UnreadBody {
    /// Drops the rest of the body. Returns whether its end has come, so that another request can follow.
    pub(super) async fn discard(self) -> bool {
        let Some(home) = self.home else { return true };
        let mut left = match Arc::try_unwrap(home) {
            Ok(home) => match home.into_inner().unwrap_or_else(PoisonError::into_inner) {
                Some(body) => body,
                None => return true,
            },
            Err(_still_in_use) => return false,
        };
        if left.is_end_stream() {
            return true;
        }
        if self.is_expecting || left.size_hint().lower() > MAX_DISCARDED {
            return false;
        }
        let read = async {
            let mut octets = 0;
            while let Some(frame) = left.frame().await {
                octets += frame.ok()?.data_ref().map_or(0, |data| data.len() as u64);
                if octets > MAX_DISCARDED {
                    return None;
                }
            }
            Some(())
        };
        matches!(tokio::time::timeout(DISCARD_TIMEOUT, read).await, Ok(Some(())))
    }
}

impl hyper::body::Body for LentBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) {
            self.body = None; // nothing of it is left
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for LentBody {
    fn drop(&mut self) {
        *self.home.lock().unwrap_or_else(PoisonError::into_inner) = self.body.take();
    }
}
