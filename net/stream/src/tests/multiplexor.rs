//! Maps of identifiers, and multiplexors.

use spandrel_sync::{Lock, Mutex, NullMutex, RwLock};

use super::{LONG, get, is_quiet, number_of, numbered};
use crate::{
    AttachError, BindError, MapManager, Message, Module, Multiplexor, PutFailure, Router, Stream, Synchronous, Wait,
};

fn bindings_with<L: Lock>() {
    let map = MapManager::<u16, &str, L>::with_limit(3);
    assert!(map.is_empty());
    for (key, value) in [(1, "a"), (2, "b"), (3, "c")] {
        map.bind(key, value).unwrap();
    }
    assert_eq!(map.bind(1, "x"), Err(BindError::AlreadyBound));
    assert_eq!(map.bind(4, "d"), Err(BindError::Full));
    assert_eq!(map.rebind(4, "d"), Err(BindError::Full));
    assert_eq!(map.rebind(1, "A"), Ok(Some("a")));
    assert_eq!((map.find(&1), map.find(&9)), (Some("A"), None));
    assert_eq!(map.find_with(&2, |value| std::mem::replace(value, "B")), Some("b"));
    let mut bindings = map.bindings();
    bindings.sort_unstable();
    assert_eq!(bindings, [(1, "A"), (2, "B"), (3, "c")]);
    let mut count = 0;
    map.for_each(|_, _| count += 1);
    assert_eq!(count, 3);
    map.retain(|key, _| *key != 3);
    assert_eq!((map.unbind(&1), map.unbind(&1), map.len()), (Some("A"), None, 1));
}

#[test]
fn identifiers_are_bound_found_and_unbound() {
    bindings_with::<Mutex>();
    bindings_with::<RwLock>();
    bindings_with::<NullMutex>();
}

/// Sends messages to the stream whose identifier is the last digit of their number.
struct ByDigit;

impl Router<u32> for ByDigit {
    fn down(&self, message: &Message, from: &u32) -> Option<u32> {
        assert!(*from >= 10);
        Some(number_of(message) % 10)
    }

    fn up(&self, message: &Message, from: &u32) -> Option<u32> {
        assert!(*from < 10);
        Some(10 + number_of(message) % 10)
    }
}

#[test]
fn messages_continue_in_the_stream_of_their_route() {
    let ports: Multiplexor<u32, Mutex, RwLock> = Multiplexor::new(ByDigit);
    let streams =
        |prefix: &str| -> Vec<Stream> { (0..3).map(|at| Stream::<Mutex>::new(format!("{prefix}{at}"))).collect() };
    let (above, below, wires) = (streams("above"), streams("below"), streams("wire"));
    for (at, stream) in (0..).zip(&above) {
        ports.bind_above(10 + at, stream).unwrap();
    }
    for ((at, stream), wire) in (0..).zip(&below).zip(&wires) {
        ports.bind_below(at, stream).unwrap();
        stream.link(wire).unwrap();
    }
    for number in [40, 51, 62] {
        above[0].put(numbered(number), Wait::Never).unwrap();
        assert_eq!(number_of(&get(&wires[number as usize % 10])), number);
        wires[2].put(numbered(number), Wait::Never).unwrap();
        assert_eq!(number_of(&get(&above[number as usize % 10])), number);
    }
    assert!(above.iter().chain(&below).chain(&wires).all(is_quiet));
    assert_eq!(above[0].put(numbered(7), Wait::Never).unwrap_err().reason, PutFailure::Unclaimed);

    assert!(ports.unbind_below(&1) && !ports.unbind_below(&1));
    assert_eq!(above[0].put(numbered(1), Wait::Never).unwrap_err().reason, PutFailure::Unclaimed);
    wires[1].put(numbered(5), Wait::Never).unwrap();
    assert_eq!(number_of(&get(&below[1])), 5, "without a multiplexor, the head queues messages");
    ports.bind_below(9, &below[1]).unwrap();
    // Streams that end are detached.
    below[0].close(LONG).unwrap();
    drop(above);
    assert_eq!(ports.above(), [0; 0]);
    let mut left = ports.below();
    left.sort_unstable();
    assert_eq!(left, [2, 9]);
    assert_eq!(wires[2].put(numbered(0), Wait::Never).unwrap_err().reason, PutFailure::Unclaimed);
    drop(ports);
    assert_eq!(wires[2].put(numbered(0), Wait::Never).unwrap_err().reason, PutFailure::Unclaimed);
}

#[test]
fn what_cannot_be_attached_is_refused() {
    let [first, second]: [Multiplexor<u32>; 2] = [(); 2].map(|()| Multiplexor::with_limits(ByDigit, 2, 2));
    let [a, b, c, d]: [Stream; 4] = ["a", "b", "c", "d"].map(Stream::new);
    a.push(Module::writer("echo", Synchronous(super::Echoing))).unwrap();
    first.bind_above(10, &a).unwrap();
    assert_eq!(first.bind_above(11, &a), Err(AttachError::Linked("a".to_owned())));
    assert_eq!(first.bind_above(10, &b), Err(AttachError::Bind(BindError::AlreadyBound)));
    assert_eq!(a.link(&b).unwrap_err().to_string(), "the stream `a` is linked already");
    // Circles: of one stream, and through another multiplexor.
    assert_eq!(first.bind_below(1, &a).unwrap_err().to_string(), "the stream `a` would be above itself");
    first.bind_below(1, &b).unwrap();
    second.bind_above(10, &b).unwrap();
    assert_eq!(second.bind_below(1, &a), Err(AttachError::Circle("a".to_owned())));
    second.bind_below(2, &c).unwrap();
    assert_eq!(first.bind_above(11, &c), Err(AttachError::Circle("c".to_owned())));
    first.bind_above(11, &d).unwrap();
    let more = Stream::<Mutex>::new("more");
    assert_eq!(first.bind_above(12, &more), Err(AttachError::Bind(BindError::Full)));
    more.close(LONG).unwrap();
    assert_eq!(second.bind_above(12, &more), Err(AttachError::Closed("more".to_owned())));
    assert!(a.unlink());
    assert_eq!(first.above(), [11]);
}
