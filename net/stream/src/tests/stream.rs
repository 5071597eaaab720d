//! Streams and their changes.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::time::Duration;

use spandrel_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use spandrel_sync::{Arc, Mutex, NullMutex, thread};
use spandrel_test_support::wait_until;

use super::{AnyStrategy, Echoing, LONG, Tracing, for_all_strategies, get, is_quiet, number_of, numbered, trace_of};
use crate::{
    Answer, Asynchronous, Context, ControlError, DequeueError, Flush, LockFree, Message, MessageKind, Module,
    OpenContext, PutError, PutFailure, Query, ServiceContext, Stream, StreamError, Synchronous, Task, TaskError, Wait,
    WaterMarks,
};

fn tracing<L: AnyStrategy>(name: &str) -> Module<L> {
    Module::new(name, Synchronous(Tracing), Synchronous(Tracing))
}

fn tracing_in_threads<L: AnyStrategy>(name: &str) -> Module<L> {
    Module::new(name, Asynchronous::new(Tracing), Asynchronous::new(Tracing))
}

fn echoing<L: AnyStrategy>(name: &str) -> Module<L> {
    Module::new(name, Synchronous(Tracing), Synchronous(Echoing))
}

for_all_strategies! {
    messages_pass_the_modules_down_and_up_again: passing;
    nothing_is_lost_while_modules_change: changing;
    a_stopped_module_holds_messages_until_it_is_started_or_flushed: stopping;
    a_suspended_stream_takes_and_passes_nothing: suspending;
    a_module_with_several_threads_passes_each_message_on_once: several_threads;
}

fn passing<L: AnyStrategy>() {
    for module in [tracing::<L>, tracing_in_threads] {
        let stream = Stream::<L>::new("echo");
        stream.push(echoing("lowest")).unwrap();
        stream.push(module("middle")).unwrap();
        stream.push(module("highest")).unwrap();
        for number in 0..100 {
            stream.put(numbered(number), Wait::Forever).unwrap();
        }
        for number in 0..100 {
            let message = get(&stream);
            assert_eq!(number_of(&message), number);
            assert_eq!(trace_of(&message), "-highest -middle -lowest +middle +highest");
        }
        stream.close(LONG).unwrap();
    }
}

#[test]
fn modules_are_inserted_removed_and_replaced_by_name() {
    let stream = Stream::<Mutex>::new("names");
    assert_eq!(stream.modules(), ["head", "tail"]);
    stream.push(echoing("b")).unwrap();
    stream.push(tracing("a")).unwrap();
    stream.insert("a", tracing("ab")).unwrap();
    assert_eq!(stream.modules(), ["head", "a", "ab", "b", "tail"]);
    assert!(stream.has("ab") && !stream.has("ba"));
    assert!(stream.replace("ab", tracing("new")).unwrap().wait(LONG));
    stream.put(numbered(1), Wait::Never).unwrap();
    assert_eq!(trace_of(&get(&stream)), "-a -new -b +new +a");
    assert!(stream.remove("new").unwrap().wait(LONG));
    assert!(stream.pop().unwrap().wait(LONG));
    stream.put(numbered(2), Wait::Never).unwrap();
    assert_eq!(trace_of(&get(&stream)), "-b");

    let error = stream.push(tracing("b")).unwrap_err();
    assert_eq!(error.to_string(), "the stream `names` has a module `b` already");
    for name in ["head", "tail"] {
        assert!(matches!(stream.push(tracing(name)), Err(StreamError::Duplicate { .. })));
        assert!(matches!(stream.remove(name), Err(StreamError::NoModule { .. })));
        assert!(matches!(stream.replace(name, tracing("x")), Err(StreamError::NoModule { .. })));
    }
    let error = stream.insert("c", tracing("d")).unwrap_err();
    assert_eq!(error.to_string(), "the stream `names` has no module `c`; it has `head`, `b`, `tail`");
    assert!(matches!(stream.insert("tail", tracing("d")), Err(StreamError::NoModule { .. })));
    stream.pop().unwrap();
    assert!(matches!(stream.pop(), Err(StreamError::NoModule { .. })));

    stream.close(LONG).unwrap();
    assert_eq!(stream.push(tracing("late")), Err(StreamError::Closed("names".to_owned())));
    assert_eq!(stream.put(numbered(3), Wait::Forever).unwrap_err().reason, PutFailure::Closed);
    assert_eq!(stream.get(Wait::Forever).unwrap_err(), DequeueError::Closed);
    stream.close(LONG).unwrap();
}

#[test]
fn as_many_modules_as_allowed_are_inserted() {
    let stream = Stream::<Mutex>::new("long");
    for number in 0..crate::MAX_MODULES {
        let module = if number == 0 { echoing("0") } else { tracing(&number.to_string()) };
        stream.push(module).unwrap();
    }
    assert_eq!(stream.push(tracing("more")), Err(StreamError::TooManyModules("long".to_owned())));
    stream.put(numbered(0), Wait::Never).unwrap();
    assert_eq!(trace_of(&get(&stream)).split(' ').count(), 2 * crate::MAX_MODULES - 1);
}

/// A task that counts its calls.
#[derive(Default)]
struct Counted {
    opened: AtomicUsize,
    closed: AtomicUsize,
    threads: usize,
    is_refused: AtomicBool,
}

struct Counting(Arc<Counted>);

impl Task for Counting {
    fn open(&self, context: &OpenContext<'_>) -> Result<(), TaskError> {
        self.0.opened.fetch_add(1, Ordering::SeqCst);
        if self.0.threads > 0 {
            context.activate(self.0.threads)?;
        }
        if self.0.is_refused.load(Ordering::SeqCst) { Err(TaskError("not today".to_owned())) } else { Ok(()) }
    }

    fn close(&self) {
        self.0.closed.fetch_add(1, Ordering::SeqCst);
    }

    fn put(&self, context: &Context<'_>, message: Message) -> Result<(), PutError> {
        context.put_next(message)
    }
}

#[test]
fn each_opened_task_is_closed_once() {
    let counted = Arc::new(Counted { threads: 2, ..Counted::default() });
    let module = || Module::new("counted", Counting(Arc::clone(&counted)), Counting(Arc::clone(&counted)));
    let calls = || (counted.opened.load(Ordering::SeqCst), counted.closed.load(Ordering::SeqCst));
    let stream = Stream::<Mutex>::new("counts");
    stream.push(module()).unwrap();
    assert_eq!(calls(), (2, 0));
    assert!(stream.replace("counted", module()).unwrap().wait(LONG));
    assert_eq!(calls(), (4, 2));
    drop(stream);
    wait_until("the tasks to close", || calls() == (4, 4));
}

#[test]
fn a_module_that_does_not_open_changes_nothing() {
    let counted = Arc::new(Counted { threads: 3, is_refused: AtomicBool::new(true), ..Counted::default() });
    let stream = Stream::<Mutex>::new("whole");
    let module = Module::new("closed", Synchronous(Tracing), Counting(Arc::clone(&counted)));
    let error = stream.push(module).unwrap_err();
    assert_eq!(error.to_string(), "module `closed` of the stream `whole`: not today");
    assert_eq!(stream.modules(), ["head", "tail"]);
    // Its threads end, and the task that was not opened is not closed.
    wait_until("the threads to end", || Arc::strong_count(&counted) == 1);
    assert_eq!(counted.closed.load(Ordering::SeqCst), 0);
    // For one thread alone there are no threads.
    let counted = Arc::new(Counted { threads: 1, ..Counted::default() });
    let stream = Stream::<spandrel_sync::Mutex>::for_one_thread("alone");
    let error = stream.push(Module::writer("threaded", Counting(counted))).unwrap_err();
    assert_eq!(error.to_string(), "module `threaded` of the stream `alone`: the stream is for one thread alone");
}

#[test]
fn one_thread_alone_needs_no_locks() {
    struct Doubling;
    impl Task<NullMutex> for Doubling {
        fn put(&self, context: &Context<'_, NullMutex>, message: Message) -> Result<(), PutError> {
            context.reply(message)
        }
    }
    let stream = Stream::<NullMutex>::for_one_thread("alone");
    stream.push(Module::writer("echo", Doubling)).unwrap();
    stream.put(numbered(7), Wait::Forever).unwrap();
    assert_eq!(number_of(&stream.get(Wait::Forever).unwrap()), 7);
    assert_eq!(stream.get(Wait::Forever).unwrap_err(), DequeueError::Empty);
}

fn changing<L: AnyStrategy>() {
    const MESSAGES: u32 = 20_000;
    for threads in [false, true] {
        let module = if threads { tracing_in_threads } else { tracing };
        let stream = Arc::new(Stream::<L>::new("changing"));
        stream.push(echoing("echo")).unwrap();
        stream.push(module("a")).unwrap();
        let is_done = Arc::new(AtomicBool::new(false));
        let changing = thread::spawn({
            let (stream, is_done) = (Arc::clone(&stream), Arc::clone(&is_done));
            move || {
                let mut changes = 0;
                while !is_done.load(Ordering::SeqCst) {
                    stream.replace("a", module("a")).unwrap();
                    stream.insert("a", module("b")).unwrap();
                    stream.push(module("c")).unwrap();
                    assert!(stream.remove("b").unwrap().wait(LONG));
                    assert!(stream.pop().unwrap().wait(LONG));
                    changes += 5;
                }
                changes
            }
        });
        let receiving = thread::spawn({
            let stream = Arc::clone(&stream);
            move || (0..MESSAGES).map(|_| number_of(&get(&stream))).collect::<Vec<_>>()
        });
        for number in 0..MESSAGES {
            stream.put(numbered(number), Wait::Forever).unwrap();
        }
        let numbers = receiving.join().unwrap();
        is_done.store(true, Ordering::SeqCst);
        assert!(changing.join().unwrap() > 10);
        if !threads {
            assert!(numbers.iter().copied().eq(0..MESSAGES), "the order is kept without threads");
        }
        assert_eq!(numbers.into_iter().collect::<BTreeSet<_>>().len(), MESSAGES as usize);
        stream.close(LONG).unwrap();
    }
}

#[test]
fn queries_are_answered_by_the_named_module() {
    /// Answers requests of its own kind with their data.
    struct Answering;
    impl Task for Answering {
        fn put(&self, context: &Context<'_>, message: Message) -> Result<(), PutError> {
            context.put_next(message)
        }

        fn control(&self, context: &Context<'_>, mut message: Message) -> Result<(), PutError> {
            let data = message.take_block();
            match message.kind() {
                MessageKind::Request(request) if request.query() == Query::Custom(9) => {
                    if let MessageKind::Request(request) = message.into_kind() {
                        request.answer(Answer::Custom(data));
                    }
                    Ok(())
                }
                _ => context.control(message),
            }
        }
    }
    let stream = Stream::<Mutex>::new("queries");
    stream.push(Module::writer("answering", Answering)).unwrap();
    stream.push(tracing("a").water_marks(WaterMarks::new(10, 5))).unwrap();
    let marks = |of: &str| match stream.control(Some(of), Query::WaterMarks, None, LONG).unwrap() {
        Answer::WaterMarks { reader, writer } => (reader.high, writer.high),
        other => panic!("{other:?}"),
    };
    assert_eq!(marks("a"), (10, 10));
    assert_eq!(marks("answering"), (WaterMarks::DEFAULT.high, WaterMarks::DEFAULT.high));
    let set = Query::SetWaterMarks(WaterMarks::new(77, 7));
    assert!(matches!(stream.control(Some("a"), set, None, LONG), Ok(Answer::Done)));
    assert_eq!(marks("a"), (77, 77));
    let answer = stream.control(None, Query::Custom(9), Some(b"data".into()), LONG).unwrap();
    assert!(matches!(answer, Answer::Custom(Some(data)) if *data == *b"data"));
    for (module, query) in [(Some("nobody"), Query::WaterMarks), (None, Query::Custom(1))] {
        assert_eq!(stream.control(module, query, None, LONG).unwrap_err(), ControlError::Unanswered);
    }
    stream.close(LONG).unwrap();
    assert_eq!(stream.control(None, Query::WaterMarks, None, LONG).unwrap_err(), ControlError::Closed);
}

#[test]
fn a_request_that_is_kept_is_not_answered_in_time() {
    /// Keeps all control messages.
    struct Keeping(Mutex<Vec<Message>>);
    impl Task for Keeping {
        fn put(&self, context: &Context<'_>, message: Message) -> Result<(), PutError> {
            context.put_next(message)
        }

        fn control(&self, _: &Context<'_>, message: Message) -> Result<(), PutError> {
            self.0.lock().push(message);
            Ok(())
        }
    }
    let stream = Stream::<Mutex>::new("kept");
    stream.push(Module::writer("keeping", Keeping(Mutex::new(Vec::new())))).unwrap();
    let time = Duration::from_millis(20);
    assert_eq!(stream.control(None, Query::Custom(1), None, time).unwrap_err(), ControlError::TimedOut);
}

fn stopping<L: AnyStrategy>() {
    let stream = Stream::<L>::new("stopped");
    stream.push(echoing("echo")).unwrap();
    stream.push(Module::writer("queue", Asynchronous::new(Tracing))).unwrap();
    let control = |query| stream.control(Some("queue"), query, None, LONG).unwrap();
    control(Query::Stop);
    for number in 0..3 {
        stream.put(numbered(number), Wait::Never).unwrap();
    }
    assert!(is_quiet(&stream));
    control(Query::Start);
    for number in 0..3 {
        assert_eq!(number_of(&get(&stream)), number);
    }
    control(Query::Stop);
    stream.put(numbered(4), Wait::Never).unwrap();
    stream.flush(Flush::Reader).unwrap();
    stream.put(numbered(5), Wait::Never).unwrap();
    stream.flush(Flush::Writer).unwrap();
    stream.put(numbered(6), Wait::Never).unwrap();
    control(Query::Start);
    assert_eq!(number_of(&get(&stream)), 6);
}

fn suspending<L: AnyStrategy>() {
    let stream = Arc::new(Stream::<L>::new("suspended"));
    stream.push(echoing("echo")).unwrap();
    stream.push(tracing_in_threads("queue")).unwrap();
    stream.put(numbered(0), Wait::Never).unwrap();
    assert_eq!(number_of(&get(&stream)), 0);
    stream.suspend();
    assert_eq!(stream.put(numbered(1), Wait::Never).unwrap_err().reason, PutFailure::Full);
    assert_eq!(stream.put(numbered(1), Wait::For(Duration::from_millis(20))).unwrap_err().reason, PutFailure::Full);
    // A module that comes in is suspended, too.
    stream.push(tracing_in_threads("late")).unwrap();
    let waiting = thread::spawn({
        let stream = Arc::clone(&stream);
        move || stream.put(numbered(2), Wait::Forever)
    });
    stream.resume();
    waiting.join().unwrap().unwrap();
    assert_eq!(trace_of(&get(&stream)), "-late -queue -echo +queue +late");
}

#[test]
fn what_comes_down_in_a_linked_stream_goes_up_in_the_other() {
    let (one, other, third) =
        (Stream::<Mutex>::new("one"), Stream::<Mutex>::new("other"), Stream::<Mutex>::new("third"));
    one.push(tracing("a")).unwrap();
    other.push(tracing("b")).unwrap();
    assert_eq!(one.put(numbered(0), Wait::Never).unwrap_err().reason, PutFailure::Unclaimed);
    one.link(&other).unwrap();
    one.put(numbered(1), Wait::Never).unwrap();
    assert_eq!(trace_of(&get(&other)), "-a +b");
    other.put(numbered(2), Wait::Never).unwrap();
    assert_eq!(trace_of(&get(&one)), "-b +a");
    assert_eq!(one.link(&one).unwrap_err().to_string(), "the link from `one` to `one` would close a circle");
    assert_eq!(third.link(&one), Err(StreamError::Linked("one".to_owned())));
    assert!(one.unlink() && !one.unlink() && !other.unlink());
    third.link(&one).unwrap();
    drop(third);
    assert_eq!(one.put(numbered(3), Wait::Never).unwrap_err().reason, PutFailure::Unclaimed);
    one.link(&other).unwrap();
    other.close(LONG).unwrap();
    assert_eq!(one.put(numbered(4), Wait::Never).unwrap_err().reason, PutFailure::Unclaimed);
    assert_eq!(one.link(&other), Err(StreamError::Closed("other".to_owned())));
}

fn several_threads<L: AnyStrategy>() {
    let stream = Stream::<L>::new("threads");
    stream.push(echoing("echo")).unwrap();
    let threads = NonZero::new(4).unwrap();
    let task = || Asynchronous::with_threads(Tracing, threads);
    stream.push(Module::new("pool", task(), task()).water_marks(WaterMarks::new(64, 32))).unwrap();
    let stream = Arc::new(stream);
    let sending = thread::spawn({
        let stream = Arc::clone(&stream);
        move || (0..5000).for_each(|number| stream.put(numbered(number), Wait::Forever).unwrap())
    });
    let numbers: BTreeSet<_> = (0..5000).map(|_| number_of(&get(&stream))).collect();
    assert_eq!(numbers.len(), 5000);
    sending.join().unwrap();
    assert!(is_quiet(&stream));
}

/// Panics at the message with the number 13, in one of so many threads of its own.
struct Unlucky(usize);

impl Task for Unlucky {
    fn open(&self, context: &OpenContext<'_>) -> Result<(), TaskError> {
        context.activate(self.0)
    }

    fn put(&self, context: &Context<'_>, message: Message) -> Result<(), PutError> {
        context.putq(message)
    }

    fn svc(&self, context: &mut ServiceContext<'_>) {
        while let Ok(message) = context.getq() {
            assert_ne!(number_of(&message), 13, "an unlucky number");
            _ = context.put_next(message);
        }
    }
}

#[test]
fn a_module_that_panics_refuses_further_messages() {
    let stream = Stream::<Mutex>::new("unlucky");
    stream.push(echoing("echo")).unwrap();
    stream.push(Module::writer("unlucky", Unlucky(3))).unwrap();
    for _ in 0..2 {
        stream.put(numbered(13), Wait::Never).unwrap(); // the third thread goes on
    }
    stream.put(numbered(12), Wait::Never).unwrap();
    assert_eq!(number_of(&get(&stream)), 12);
    stream.put(numbered(13), Wait::Never).unwrap();
    wait_until("the failure", || {
        stream.put(numbered(14), Wait::Never).is_err_and(|error| error.reason == PutFailure::Failed)
    });
    // Its replacement goes on.
    assert!(stream.replace("unlucky", Module::writer("unlucky", Unlucky(1))).unwrap().wait(LONG));
    stream.put(numbered(15), Wait::Never).unwrap();
    assert_eq!(number_of(&get(&stream)), 15);
    stream.close(LONG).unwrap();
}

#[test]
fn a_module_that_does_not_end_is_named() {
    /// Waits until it may end.
    struct Stubborn(Arc<AtomicBool>, Arc<AtomicBool>);
    impl Task for Stubborn {
        fn open(&self, context: &OpenContext<'_>) -> Result<(), TaskError> {
            context.activate(1)
        }

        fn put(&self, context: &Context<'_>, message: Message) -> Result<(), PutError> {
            context.putq(message)
        }

        fn svc(&self, _: &mut ServiceContext<'_>) {
            self.1.store(true, Ordering::SeqCst);
            wait_until("the permission to end", || self.0.load(Ordering::SeqCst));
        }
    }
    let (may_end, has_begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let stream = Stream::<Mutex>::new("held");
    stream.push(Module::writer("stubborn", Stubborn(Arc::clone(&may_end), Arc::clone(&has_begun)))).unwrap();
    wait_until("the thread to begin", || has_begun.load(Ordering::SeqCst));
    let error = stream.close(Duration::from_millis(50)).unwrap_err();
    assert_eq!(error.to_string(), "threads of the stream `held` have not ended after 50ms, in: stubborn");
    may_end.store(true, Ordering::SeqCst);
    wait_until("the thread to end", || Arc::strong_count(&may_end) == 1);
}
