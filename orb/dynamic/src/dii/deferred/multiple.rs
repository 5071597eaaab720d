//! Several requests at once (CORBA 3.3 Part 1, 11.3).

use std::{collections::VecDeque, task::Wake};

use spandrel_giop::SystemException;
use spandrel_orb::Orb;
use spandrel_sync::{
    Arc, Condition, Mutex,
    atomic::{AtomicBool, Ordering},
};

use crate::Request;

/// Sends several requests at once: operations of IDL `CORBA::ORB`.
///
/// In the standard any thread may collect responses from the ORB; here the sender of the requests owns them.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod dynamic { pub use spandrel_dynamic::*; } pub mod types { pub use spandrel_cdr::{Any, TypeCode}; } }
/// use spandrel::dynamic::{CreateRequest, MultipleRequests, RequestError};
/// use spandrel::types::TypeCode;
/// use spandrel::{ObjectRef, Orb};
///
/// /// Returns the sum of the balances of several accounts, which are asked at the same time.
/// fn sum(orb: &Orb, accounts: &[ObjectRef]) -> Result<i64, RequestError> {
///     let requests = accounts.iter().map(|account| {
///         let mut request = account.request("_get_balance");
///         request.set_return_type(TypeCode::LONGLONG);
///         request
///     });
///     let mut responses = orb.send_multiple_requests_deferred(requests.collect())?;
///     let mut sum = 0;
///     while let Some((_, mut request)) = responses.get_next_response() {
///         request.get_response()?;
///         sum += request.return_value::<i64>()?;
///     }
///     Ok(sum)
/// }
/// ```
pub trait MultipleRequests {
    /// Sends requests in order, without replies.
    ///
    /// # Errors
    /// The first system exception of a request that could not be sent; later ones are tried nevertheless.
    fn send_multiple_requests_oneway(&self, requests: &mut [Request]) -> Result<(), SystemException>;

    /// Sends requests in order and returns at once: their replies arrive in any order.
    ///
    /// # Errors
    /// BAD_INV_ORDER if an earlier reply of one is outstanding; none is sent then.
    fn send_multiple_requests_deferred(&self, requests: Vec<Request>) -> Result<Responses, SystemException>;
}

impl MultipleRequests for Orb {
    fn send_multiple_requests_oneway(&self, requests: &mut [Request]) -> Result<(), SystemException> {
        let mut outcome = Ok(());
        for request in requests {
            let sent = request.send_oneway();
            outcome = outcome.and(sent);
        }
        outcome
    }

    fn send_multiple_requests_deferred(&self, requests: Vec<Request>) -> Result<Responses, SystemException> {
        requests.iter().try_for_each(Request::check_not_pending)?;
        let mut responses = Responses { left: requests.len(), ..Responses::default() };
        for (index, mut request) in requests.into_iter().enumerate() {
            request.send_deferred()?;
            let waker =
                Arc::new(ReplyWaker { index, is_woken: AtomicBool::new(false), ready: Arc::clone(&responses.ready) });
            if request.pending()?.has_arrived_or_wake(&Arc::clone(&waker).into()) {
                waker.wake();
            }
            responses.requests.push(Some(request));
        }
        Ok(responses)
    }
}

/// Requests that were sent together, until their replies are collected.
#[derive(Debug, Default)]
pub struct Responses {
    requests: Vec<Option<Request>>,
    left: usize,
    ready: Arc<Ready>,
}

/// The replies that have arrived, in order of arrival.
#[derive(Debug, Default)]
struct Ready {
    queue: Mutex<VecDeque<usize>>,
    changed: Condition,
}

/// The waker of one request, which records the arrival of its reply.
#[derive(Debug)]
struct ReplyWaker {
    index: usize,
    is_woken: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for ReplyWaker {
    fn wake(self: Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::SeqCst) {
            self.ready.queue.lock().push_back(self.index);
            self.ready.changed.notify_one();
        }
    }
}

impl Responses {
    /// The number of replies that have not been collected.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left
    }

    /// Whether a reply can be collected without waiting.
    #[must_use]
    pub fn poll_next_response(&self) -> bool {
        !self.ready.queue.lock().is_empty()
    }

    /// The next request whose reply has arrived, with its index among the sent ones; waits for one. `None` if
    /// all have been collected. Its [`get_response`](Request::get_response) does not wait, and returns the
    /// outcome.
    pub fn get_next_response(&mut self) -> Option<(usize, Request)> {
        if self.left == 0 {
            return None;
        }
        let mut queue = self.ready.queue.lock();
        loop {
            if let Some(index) = queue.pop_front() {
                self.left -= 1;
                let request = self.requests[index].take();
                return Some((index, request.expect("a request is answered once")));
            }
            self.ready.changed.wait(&mut queue);
        }
    }
}
