//! Several requests at once (CORBA 3.3 Part 1, 11.3).

use std::{collections::VecDeque, task::Wake};

use spandrel_giop::SystemException;
use spandrel_orb::Orb;
use spandrel_sync::{
    Arc, Condition, Mutex,
    atomic::{AtomicBool, Ordering},
};

use super::Request;

/// Sends several requests at once: operations of IDL `CORBA::ORB`.
///
/// The standard's ORB hands out responses itself, to whoever asks; here each has them who sent the requests.
pub trait MultipleRequests {
    /// Sends requests in their order, and awaits no answers.
    ///
    /// # Errors
    /// The first system exception that kept one from being sent; those after it are tried nevertheless.
    fn send_multiple_requests_oneway(&self, requests: &mut [Request]) -> Result<(), SystemException>;

    /// Sends requests in their order and returns at once: their answers come in any order.
    ///
    /// # Errors
    /// BAD_INV_ORDER if one was sent before and is still to be answered; none is sent then.
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
            let bell = Arc::new(Bell { index, has_rung: AtomicBool::new(false), ready: Arc::clone(&responses.ready) });
            if request.pending()?.announce(&Arc::clone(&bell).into()) {
                bell.wake();
            }
            responses.requests.push(Some(request));
        }
        Ok(responses)
    }
}

/// Requests whose answers are to come.
#[derive(Debug, Default)]
pub struct Responses {
    requests: Vec<Option<Request>>,
    left: usize,
    ready: Arc<Ready>,
}

/// Which answers have come, the first first.
#[derive(Debug, Default)]
struct Ready {
    queue: Mutex<VecDeque<usize>>,
    changed: Condition,
}

/// Says of one request that its answer has come.
#[derive(Debug)]
struct Bell {
    index: usize,
    has_rung: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if !self.has_rung.swap(true, Ordering::SeqCst) {
            self.ready.queue.lock().push_back(self.index);
            self.ready.changed.notify_one();
        }
    }
}

impl Responses {
    /// How many answers have not been taken.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left
    }

    /// True if an answer can be taken without waiting.
    #[must_use]
    pub fn poll_next_response(&self) -> bool {
        !self.ready.queue.lock().is_empty()
    }

    /// The next request whose answer has come, and which of those that were sent it is; waits for one. None if all have been
    /// taken. Its [`get_response`](Request::get_response) does not wait, and says what came of it.
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
