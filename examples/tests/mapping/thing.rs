//! Attributes, one-ways and exceptions.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use spandrel::{CompletionStatus, SystemException, SystemExceptionKind, cdr::ByteOrder};

use super::idl::mapping::thing::WithdrawError;
use super::idl::mapping::*;
use super::idl::shared::Refused;
use crate::pair::Pair;

#[derive(Default)]
struct State {
    paint: Colour,
    contents: Octets,
    memories: Texts,
    balance: i64,
    closed: bool,
}

struct Server {
    state: Mutex<State>,
    remembered: mpsc::Sender<String>,
}

type Answer<T> = Result<T, SystemException>;

impl Server {
    fn with<T>(&self, action: impl FnOnce(&mut State) -> T) -> T {
        action(&mut self.state.lock().expect("no servant panicked"))
    }
}

impl ThingServant for Server {
    fn name(&self) -> Answer<String> {
        Ok("Thing One".to_owned())
    }

    fn paint(&self) -> Answer<Colour> {
        Ok(self.with(|state| state.paint))
    }

    fn set_paint(&self, value: Colour) -> Answer<()> {
        self.with(|state| state.paint = value);
        Ok(())
    }

    fn contents(&self) -> Answer<Octets> {
        Ok(self.with(|state| state.contents.clone()))
    }

    fn set_contents(&self, value: &[u8]) -> Answer<()> {
        self.with(|state| state.contents = value.to_vec());
        Ok(())
    }

    fn remember(&self, what: &str) -> Answer<()> {
        self.with(|state| state.memories.push(what.to_owned()));
        self.remembered.send(what.to_owned()).expect("the test listens");
        Ok(())
    }

    fn memories(&self) -> Answer<Texts> {
        Ok(self.with(|state| state.memories.clone()))
    }

    fn withdraw(&self, amount: i64) -> Result<i64, WithdrawError> {
        self.with(|state| match amount {
            _ if state.closed => Err(Closed {}.into()),
            ..0 => Err(Refused { why: format!("{amount} is less than nothing") }.into()),
            13 => Err(SystemException::no_permission(7, CompletionStatus::No).into()),
            _ if amount > state.balance => Err(TooMuch { asked: amount, available: state.balance }.into()),
            _ => {
                state.balance -= amount;
                Ok(state.balance)
            }
        })
    }

    fn close(&self) -> Answer<()> {
        self.with(|state| state.closed = true);
        Ok(())
    }
}

/// The client's reference, the server's share of the servant, and the receiver of one-ways.
fn thing(pair: &Pair) -> (Thing, Arc<Server>, mpsc::Receiver<String>) {
    let (remembered, told) = mpsc::channel();
    let server = Arc::new(Server { state: Mutex::new(State { balance: 100, ..State::default() }), remembered });
    (pair.serve(ThingSkeleton::new(Arc::clone(&server))), server, told)
}

#[test]
fn attributes_are_got_and_set() {
    let pair = Pair::new(ByteOrder::Little);
    let (thing, server, _told) = thing(&pair);
    assert_eq!(thing.name(), Ok("Thing One".to_owned()));
    assert_eq!(thing.paint(), Ok(Colour::Red));
    assert_eq!(thing.set_paint(Colour::UltraViolet), Ok(()));
    assert_eq!(thing.paint(), Ok(Colour::UltraViolet));
    assert_eq!(thing.set_contents(&[1, 2, 3]), Ok(()));
    assert_eq!(thing.contents(), Ok(vec![1, 2, 3]));
    // The server keeps its share of a servant in an `Arc`.
    assert_eq!(server.with(|state| state.contents.clone()), [1, 2, 3]);
}

#[test]
fn a_oneway_arrives_without_a_reply() {
    let pair = Pair::new(ByteOrder::Little);
    let (thing, _server, told) = thing(&pair);
    assert_eq!(thing.remember("the milk"), Ok(()));
    assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok("the milk".to_owned()));
    assert_eq!(thing.memories(), Ok(vec!["the milk".to_owned()]));
}

#[test]
fn each_exception_arrives_with_its_type() {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let pair = Pair::new(order);
        let (thing, _server, _told) = thing(&pair);
        assert_eq!(thing.withdraw(30), Ok(70));
        let too_much = TooMuch { asked: 71, available: 70 };
        assert_eq!(thing.withdraw(71), Err(WithdrawError::TooMuch(too_much)));
        let refused = Refused { why: "-1 is less than nothing".to_owned() };
        assert_eq!(thing.withdraw(-1), Err(WithdrawError::Refused(refused)));
        match thing.withdraw(13) {
            Err(WithdrawError::System(error)) => {
                assert_eq!((error.kind(), error.minor()), (SystemExceptionKind::NoPermission, 7));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(thing.close(), Ok(()));
        assert_eq!(thing.withdraw(1), Err(WithdrawError::Closed(Closed {})));
    }
}

#[test]
fn exceptions_are_errors_with_a_text() {
    let error: Box<dyn std::error::Error> = Box::new(TooMuch { asked: 2, available: 1 });
    assert_eq!(error.to_string(), "Mapping::TooMuch { asked: 2, available: 1 }");
    assert_eq!(Closed {}.to_string(), "Mapping::Closed");
    let error: WithdrawError = Closed {}.into();
    assert_eq!(error.to_string(), "Mapping::Closed");
}

#[test]
fn an_unknown_operation_is_rejected() {
    let pair = Pair::new(ByteOrder::Little);
    let (thing, _server, _told) = thing(&pair);
    let bottom = Bottom::unchecked_narrow(thing.as_object());
    let error = bottom.to_bottom().expect_err("no such operation");
    assert_eq!(error.kind(), SystemExceptionKind::BadOperation);
}
