//! The kinds of call, and their outcomes at the caller.

use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::task::{Context, Poll, Waker};

use spandrel::dynamic::{CreateRequest, RequestError};
use spandrel::messaging::ExceptionHolder;
use spandrel::policy::{SetOverrideType, SyncScopePolicy};
use spandrel::{CompletionStatus, SystemException, types::Typed};
use spandrel_test_support::ready_within;

use crate::TIMEOUT;
use crate::ledger::{AmiBookHandler, Book};

/// How a request is invoked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CallKind {
    Synchronous,
    Future,
    /// A future that is dropped after its request has been sent.
    Dropped,
    Callback,
    Dynamic,
    Deferred,
    Unreliable,
    WithTransport,
    WithServer,
    WithTarget,
    Locate,
}

pub const CALL_KINDS: [CallKind; 11] = [
    CallKind::Synchronous,
    CallKind::Future,
    CallKind::Dropped,
    CallKind::Callback,
    CallKind::Dynamic,
    CallKind::Deferred,
    CallKind::Unreliable,
    CallKind::WithTransport,
    CallKind::WithServer,
    CallKind::WithTarget,
    CallKind::Locate,
];

/// The outcome of a call at the caller.
#[derive(Debug)]
pub enum Outcome {
    /// The call returned the data that was sent.
    Returned,
    Raised(SystemException),
    /// The caller dropped the call.
    Ignored,
    /// A violation of the invocation semantics.
    Violation(String),
}

impl CallKind {
    /// True if a normal return implies that the request was executed to the end.
    pub fn awaits_execution(self) -> bool {
        !matches!(self, Self::Dropped | Self::Unreliable | Self::WithTransport | Self::WithServer | Self::Locate)
    }

    /// True if the caller waits for a message from the server.
    pub fn awaits_message(self) -> bool {
        !matches!(self, Self::Dropped | Self::Unreliable | Self::WithTransport)
    }

    pub fn invoke(self, book: &Book, number: u64, data: &[u8]) -> Outcome {
        match self {
            Self::Synchronous => check_echo(book.enter(number, data), data),
            Self::Future => ready_within(TIMEOUT, book.enter_async(number, data))
                .map_or_else(not_in_time, |result| check_echo(result, data)),
            Self::Dropped => {
                let mut future = book.enter_async(number, data);
                let polled = Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop()));
                drop(future);
                match polled {
                    Poll::Ready(result) => check_echo(result, data),
                    Poll::Pending => Outcome::Ignored,
                }
            }
            Self::Callback => call_back(book, number, data),
            Self::Dynamic => dynamic(book, number, data, false),
            Self::Deferred => dynamic(book, number, data, true),
            Self::Unreliable => one_way(book, SyncScopePolicy::None, number, data),
            Self::WithTransport => one_way(book, SyncScopePolicy::WithTransport, number, data),
            Self::WithServer => one_way(book, SyncScopePolicy::WithServer, number, data),
            Self::WithTarget => one_way(book, SyncScopePolicy::WithTarget, number, data),
            Self::Locate => from_result(book.as_object().locate().map(drop)),
        }
    }
}

fn from_result(outcome: Result<(), SystemException>) -> Outcome {
    outcome.map_or_else(Outcome::Raised, |()| Outcome::Returned)
}

fn check_echo(outcome: Result<Vec<u8>, SystemException>, data: &[u8]) -> Outcome {
    match outcome {
        Ok(data_back) if data_back == data => Outcome::Returned,
        Ok(data_back) => Outcome::Violation(format!("{} octets were returned for {}", data_back.len(), data.len())),
        Err(exception) => Outcome::Raised(exception),
    }
}

fn not_in_time() -> Outcome {
    Outcome::Violation("the call did not return in time".to_owned())
}

fn one_way(book: &Book, scope: SyncScopePolicy, number: u64, data: &[u8]) -> Outcome {
    let overridden = book.as_object().set_policy_overrides(&[scope.into()], SetOverrideType::AddOverride);
    match overridden {
        Ok(object) => from_result(Book::unchecked_narrow(&object).note(number, data)),
        Err(error) => Outcome::Violation(error.to_string()),
    }
}

fn dynamic(book: &Book, number: u64, data: &[u8], deferred: bool) -> Outcome {
    let invoke = || -> Result<Vec<u8>, RequestError> {
        let mut request = book.as_object().request("enter");
        request.add_in_arg(&number)?.add_in_arg(data)?.set_return_type(<Vec<u8> as Typed>::type_code());
        if deferred {
            request.send_deferred()?;
            request.get_response()?;
        } else {
            request.invoke()?;
        }
        Ok(request.return_value::<Vec<u8>>()?)
    };
    match invoke() {
        Ok(data_back) => check_echo(Ok(data_back), data),
        Err(RequestError::System(exception)) => Outcome::Raised(exception),
        Err(other) => Outcome::Violation(other.to_string()),
    }
}

/// Sends each callback's outcome to a channel.
struct Handler(Mutex<mpsc::Sender<Result<Vec<u8>, SystemException>>>);

impl Handler {
    fn send(&self, outcome: Result<Vec<u8>, SystemException>) {
        // The receiver may be gone after its timeout.
        _ = self.0.lock().expect("no thread panics with the lock held").send(outcome);
    }
}

impl AmiBookHandler for Handler {
    fn enter(&self, data_back: Vec<u8>) {
        self.send(Ok(data_back));
    }

    fn enter_excep(&self, holder: ExceptionHolder<SystemException>) {
        self.send(holder.raise_exception());
    }
}

fn call_back(book: &Book, number: u64, data: &[u8]) -> Outcome {
    let (send, receive) = mpsc::channel();
    let handler = Arc::new(Handler(Mutex::new(send)));
    if let Err(exception) = book.sendc_enter(Some(handler), number, data) {
        return Outcome::Raised(exception);
    }
    let Ok(outcome) = receive.recv_timeout(TIMEOUT) else { return not_in_time() };
    // The ORB drops the handler after its callback, which closes the channel.
    match receive.recv_timeout(TIMEOUT) {
        Err(mpsc::RecvTimeoutError::Disconnected) => check_echo(outcome, data),
        Err(mpsc::RecvTimeoutError::Timeout) => Outcome::Violation("the ORB has not dropped the handler".to_owned()),
        Ok(second) => Outcome::Violation(format!("the handler was called twice: {outcome:?}, {second:?}")),
    }
}

/// The outcome that another thread will set.
#[derive(Default)]
struct Promised {
    outcome: Option<Result<(), SystemException>>,
    waker: Option<Waker>,
}

/// The sender of the outcome of [`promise`].
pub struct Promise(Arc<(Mutex<Promised>, Condvar)>);

impl Promise {
    pub fn set(self, outcome: Result<(), SystemException>) {
        let mut promised = self.0.0.lock().expect("no thread panics with the lock held");
        promised.outcome = Some(outcome);
        if let Some(waker) = promised.waker.take() {
            waker.wake();
        }
    }
}

/// A future whose outcome another thread sets.
pub fn promise() -> (Promise, impl Future<Output = Result<(), SystemException>> + Send + use<>) {
    let shared = Arc::<(Mutex<Promised>, Condvar)>::default();
    let state = Arc::clone(&shared);
    let outcome = std::future::poll_fn(move |cx| {
        let mut promised = state.0.lock().expect("no thread panics with the lock held");
        promised.waker = Some(cx.waker().clone());
        promised.outcome.take().map_or(Poll::Pending, Poll::Ready)
    });
    (Promise(shared), outcome)
}

/// The completion status in an outcome.
pub fn completion(from_result: &Outcome) -> Option<CompletionStatus> {
    match from_result {
        Outcome::Raised(exception) => Some(exception.completed()),
        Outcome::Returned | Outcome::Ignored | Outcome::Violation(_) => None,
    }
}
