//! The ways in which something is asked of a server, and what may come of it.

use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::task::{Context, Poll, Waker};

use spandrel::dynamic::{CreateRequest, RequestError};
use spandrel::messaging::ExceptionHolder;
use spandrel::policies::{SetOverrideType, SyncScopePolicy};
use spandrel::{CompletionStatus, SystemException, Typed};
use spandrel_test_support::ready_within;

use crate::LONG;
use crate::ledger::{AmiBookHandler, Book};

/// How a request is made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    Synchronous,
    Future,
    /// A future that is dropped once its request is on its way.
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

pub const WAYS: [Way; 11] = [
    Way::Synchronous,
    Way::Future,
    Way::Dropped,
    Way::Callback,
    Way::Dynamic,
    Way::Deferred,
    Way::Unreliable,
    Way::WithTransport,
    Way::WithServer,
    Way::WithTarget,
    Way::Locate,
];

/// What the caller was told.
#[derive(Debug)]
pub enum Told {
    /// It was done, and what came back is what was sent.
    Done,
    Refused(SystemException),
    /// It did not want to know.
    Nothing,
    /// Anything that must not be.
    Wrong(String),
}

impl Way {
    /// Done means that it was executed: the caller has waited for its end.
    pub fn awaits_execution(self) -> bool {
        !matches!(self, Self::Dropped | Self::Unreliable | Self::WithTransport | Self::WithServer | Self::Locate)
    }

    /// The caller waits for anything at all from the server.
    pub fn awaits_answer(self) -> bool {
        !matches!(self, Self::Dropped | Self::Unreliable | Self::WithTransport)
    }

    pub fn ask(self, book: &Book, number: u64, data: &[u8]) -> Told {
        match self {
            Self::Synchronous => echoed(book.enter(number, data), data),
            Self::Future => {
                ready_within(LONG, book.enter_async(number, data)).map_or_else(late, |came| echoed(came, data))
            }
            Self::Dropped => {
                let mut future = book.enter_async(number, data);
                let polled = Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop()));
                drop(future);
                match polled {
                    Poll::Ready(came) => echoed(came, data),
                    Poll::Pending => Told::Nothing,
                }
            }
            Self::Callback => call_back(book, number, data),
            Self::Dynamic => dynamic(book, number, data, false),
            Self::Deferred => dynamic(book, number, data, true),
            Self::Unreliable => one_way(book, SyncScopePolicy::None, number, data),
            Self::WithTransport => one_way(book, SyncScopePolicy::WithTransport, number, data),
            Self::WithServer => one_way(book, SyncScopePolicy::WithServer, number, data),
            Self::WithTarget => one_way(book, SyncScopePolicy::WithTarget, number, data),
            Self::Locate => told(book.as_object().locate().map(drop)),
        }
    }
}

fn told(outcome: Result<(), SystemException>) -> Told {
    outcome.map_or_else(Told::Refused, |()| Told::Done)
}

fn echoed(outcome: Result<Vec<u8>, SystemException>, data: &[u8]) -> Told {
    match outcome {
        Ok(back) if back == data => Told::Done,
        Ok(back) => Told::Wrong(format!("{} octets came back for {}", back.len(), data.len())),
        Err(exception) => Told::Refused(exception),
    }
}

fn late() -> Told {
    Told::Wrong("nothing came".to_owned())
}

fn one_way(book: &Book, scope: SyncScopePolicy, number: u64, data: &[u8]) -> Told {
    let overridden = book.as_object().set_policy_overrides(&[scope.into()], SetOverrideType::AddOverride);
    match overridden {
        Ok(object) => told(Book::unchecked_narrow(&object).note(number, data)),
        Err(error) => Told::Wrong(error.to_string()),
    }
}

fn dynamic(book: &Book, number: u64, data: &[u8], deferred: bool) -> Told {
    let ask = || -> Result<Vec<u8>, RequestError> {
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
    match ask() {
        Ok(back) => echoed(Ok(back), data),
        Err(RequestError::System(exception)) => Told::Refused(exception),
        Err(other) => Told::Wrong(other.to_string()),
    }
}

/// Hands on what it is told, each time.
struct Handler(Mutex<mpsc::Sender<Result<Vec<u8>, SystemException>>>);

impl Handler {
    fn hand_on(&self, outcome: Result<Vec<u8>, SystemException>) {
        // Nobody listens any more to what comes too late.
        _ = self.0.lock().expect("nobody panics with it").send(outcome);
    }
}

impl AmiBookHandler for Handler {
    fn enter(&self, back: Vec<u8>) {
        self.hand_on(Ok(back));
    }

    fn enter_excep(&self, holder: ExceptionHolder<SystemException>) {
        self.hand_on(holder.raise_exception());
    }
}

fn call_back(book: &Book, number: u64, data: &[u8]) -> Told {
    let (send, receive) = mpsc::channel();
    let handler = Arc::new(Handler(Mutex::new(send)));
    if let Err(exception) = book.sendc_enter(Some(handler), number, data) {
        return Told::Refused(exception);
    }
    let Ok(outcome) = receive.recv_timeout(LONG) else { return late() };
    // The ORB lets go of the handler once it was told, so this ends by itself.
    match receive.recv_timeout(LONG) {
        Err(mpsc::RecvTimeoutError::Disconnected) => echoed(outcome, data),
        Err(mpsc::RecvTimeoutError::Timeout) => Told::Wrong("the handler is kept".to_owned()),
        Ok(again) => Told::Wrong(format!("told twice: {outcome:?}, {again:?}")),
    }
}

/// What another thread promises.
#[derive(Default)]
struct Promised {
    outcome: Option<Result<(), SystemException>>,
    waker: Option<Waker>,
}

/// Keeps a promise.
pub struct Promise(Arc<(Mutex<Promised>, Condvar)>);

impl Promise {
    pub fn keep(self, outcome: Result<(), SystemException>) {
        let mut promised = self.0.0.lock().expect("nobody panics with it");
        promised.outcome = Some(outcome);
        if let Some(waker) = promised.waker.take() {
            waker.wake();
        }
    }
}

/// Something that another thread will say.
pub fn promise() -> (Promise, impl Future<Output = Result<(), SystemException>> + Send + use<>) {
    let shared = Arc::<(Mutex<Promised>, Condvar)>::default();
    let kept = Arc::clone(&shared);
    let outcome = std::future::poll_fn(move |cx| {
        let mut promised = kept.0.lock().expect("nobody panics with it");
        promised.waker = Some(cx.waker().clone());
        promised.outcome.take().map_or(Poll::Pending, Poll::Ready)
    });
    (Promise(shared), outcome)
}

/// What is known of a request of which it is told that.
pub fn completion(told: &Told) -> Option<CompletionStatus> {
    match told {
        Told::Refused(exception) => Some(exception.completed()),
        Told::Done | Told::Nothing | Told::Wrong(_) => None,
    }
}
