//! Tests of queues, streams and multiplexors.

mod configured;
mod flow;
mod multiplexor;
mod queue;
mod stream;

use std::time::Duration;

use crate::{Context, Message, PutError, QueueStrategy, Service, Side, Stream, Wait};

/// A time that no test needs.
const LONG: Duration = Duration::from_secs(60);

/// A strategy for streams of several threads.
trait AnyStrategy: QueueStrategy<Queue: Send + Sync> {}

impl<L: QueueStrategy<Queue: Send + Sync>> AnyStrategy for L {}

/// A test for each strategy, with a function that is generic over them.
macro_rules! for_all_strategies {
    ($($name:ident: $test:ident;)+) => {
        $(#[test]
        fn $name() {
            $test::<Mutex>();
            $test::<LockFree>();
        })+
    };
}
use for_all_strategies;

/// The way of a message, in its control block.
#[derive(Debug, Default)]
struct Trace(Vec<String>);

/// A message with a number as its data, and an empty trace.
fn numbered(number: u32) -> Message {
    Message::data((&number.to_be_bytes()).into()).with_control(Trace::default())
}

fn number_of(message: &Message) -> u32 {
    u32::from_be_bytes(message.block().expect("data")[..].try_into().expect("four octets"))
}

fn trace_of(message: &Message) -> String {
    message.control::<Trace>().expect("a trace").0.join(" ")
}

/// Adds its module's name to the trace of each message, with `-` for the way down and `+` for the way up.
#[derive(Clone, Copy, Debug)]
struct Tracing;

impl<L: QueueStrategy> Service<L> for Tracing {
    fn process(&self, context: &Context<'_, L>, mut message: Message) -> Result<(), PutError> {
        trace(context, &mut message);
        context.put_next(message)
    }
}

/// As [`Tracing`], but sends messages that come down up again.
#[derive(Clone, Copy, Debug)]
struct Echoing;

impl<L: QueueStrategy> Service<L> for Echoing {
    fn process(&self, context: &Context<'_, L>, mut message: Message) -> Result<(), PutError> {
        trace(context, &mut message);
        match context.side() {
            Side::Writer => context.reply(message),
            Side::Reader => context.put_next(message),
        }
    }
}

fn trace<L: QueueStrategy>(context: &Context<'_, L>, message: &mut Message) {
    let direction = if context.side() == Side::Writer { '-' } else { '+' };
    if let Some(trace) = message.control_mut::<Trace>() {
        trace.0.push(format!("{direction}{}", context.module_name()));
    }
}

/// The next message at the head.
fn get<L: AnyStrategy>(stream: &Stream<L>) -> Message {
    stream.get(Wait::For(LONG)).expect("a message")
}

/// Whether a stream has no message for the application now.
fn is_quiet<L: AnyStrategy>(stream: &Stream<L>) -> bool {
    stream.get(Wait::Never).is_err()
}
