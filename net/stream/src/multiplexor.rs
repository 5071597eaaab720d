//! Multiplexors: many streams above and many below.

use std::fmt;
use std::hash::Hash;

use spandrel_sync::{Arc, Lock, Mutex, Weak};

use crate::map_manager::BindError;
use crate::stream_core::{Attachment, Beyond, StreamCore, linking};
use crate::task::Sender;
use crate::{MapManager, Message, PutError, PutFailure, QueueStrategy, Side, Stream};

/// The choice of the stream in which a message of a [`Multiplexor`] goes on.
pub trait Router<K>: Send + Sync + 'static {
    /// The stream below for a message that comes down from the stream above that is bound to `from`; `None` refuses it.
    fn down(&self, message: &Message, from: &K) -> Option<K>;

    /// The stream above for a message that comes up from the stream below that is bound to `from`; `None` refuses it.
    fn up(&self, message: &Message, from: &K) -> Option<K>;
}

/// The reason for which a stream was not attached to a multiplexor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// The identifier is bound already, or the multiplexor has as many streams as it may have.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// That end of the stream is linked already.
    #[error("that end of the stream `{0}` is linked already")]
    Linked(String),
    /// Messages would come back to the stream from which they started.
    #[error("the stream `{0}` would be above itself")]
    Circle(String),
    /// The stream of this name is closed.
    #[error("the stream `{0}` is closed")]
    Closed(String),
}

/// A stream that is attached to a multiplexor: the internal identifier in its maps. It does not keep the stream.
pub struct StreamHandle<L: QueueStrategy>(Weak<StreamCore<L>>);

impl<L: QueueStrategy> Clone for StreamHandle<L> {
    fn clone(&self) -> Self {
        Self(Weak::clone(&self.0))
    }
}

impl<L: QueueStrategy> fmt::Debug for StreamHandle<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stream = self.0.upgrade();
        f.debug_tuple("StreamHandle").field(&stream.as_ref().map(|stream| &stream.name)).finish()
    }
}

/// Passes messages between many streams above and many streams below, which are bound to identifiers.
///
/// The tails of the streams above pass to it what comes down, and the heads of the streams below what comes up: a
/// [`Router`] chooses the stream in which a message goes on. Streams that are closed or dropped are detached.
///
/// `K` identifies streams, and `M` is the locking strategy of the maps, such as [`RwLock`](spandrel_sync::RwLock).
///
/// ```
/// use spandrel_stream::{Message, Multiplexor, Router, Stream, Wait};
///
/// /// The control block of a message.
/// struct Port(u16);
///
/// /// Each port has a stream above; there is one device.
/// struct Ports;
///
/// impl Router<u16> for Ports {
///     fn down(&self, _: &Message, _: &u16) -> Option<u16> {
///         Some(0)
///     }
///     fn up(&self, message: &Message, _: &u16) -> Option<u16> {
///         message.control::<Port>().map(|port| port.0)
///     }
/// }
///
/// let (naming, device, wire): (Stream, Stream, Stream) = (Stream::new("naming"), Stream::new("device"), Stream::new("wire"));
/// let ports: Multiplexor<u16> = Multiplexor::new(Ports);
/// ports.bind_above(2809, &naming)?;
/// ports.bind_below(0, &device)?;
/// device.link(&wire)?;
///
/// naming.put(Message::data(b"down".into()), Wait::Never)?;
/// assert_eq!(&**wire.get(Wait::Never)?.block().unwrap(), b"down");
/// wire.put(Message::data(b"up".into()).with_control(Port(2809)), Wait::Never)?;
/// assert_eq!(&**naming.get(Wait::Never)?.block().unwrap(), b"up");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Multiplexor<K, L: QueueStrategy = Mutex, M: Lock = Mutex> {
    core: Arc<Core<K, L, M>>,
}

struct Core<K, L: QueueStrategy, M: Lock> {
    router: Box<dyn Router<K>>,
    above: MapManager<K, StreamHandle<L>, M>,
    below: MapManager<K, StreamHandle<L>, M>,
}

impl<K, L, M> Multiplexor<K, L, M>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    L: QueueStrategy,
    M: Lock,
    L::Queue: Send + Sync,
    MapManager<K, StreamHandle<L>, M>: Send + Sync,
{
    /// A multiplexor without streams and without a limit for them.
    #[must_use]
    pub fn new(router: impl Router<K>) -> Self {
        Self::with_limits(router, usize::MAX, usize::MAX)
    }

    /// A multiplexor of at most that many streams above and below.
    #[must_use]
    pub fn with_limits(router: impl Router<K>, above: usize, below: usize) -> Self {
        let (above, below) = (MapManager::with_limit(above), MapManager::with_limit(below));
        Self { core: Arc::new(Core { router: Box::new(router), above, below }) }
    }

    /// Attaches the lower end of a stream, which then gets the messages for `key` that come up.
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn bind_above(&self, key: K, stream: &Stream<L>) -> Result<(), AttachError> {
        let _linking = linking();
        let stream = stream.core();
        if live_streams(&self.core.below).iter().any(|below| is_above(below, stream)) {
            return Err(AttachError::Circle(stream.name.clone()));
        }
        attach(stream, &stream.below, &self.core.above, key.clone(), self.attached(key, Side::Writer))
    }

    /// Attaches the upper end of a stream, which then gets the messages for `key` that go down.
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn bind_below(&self, key: K, stream: &Stream<L>) -> Result<(), AttachError> {
        let _linking = linking();
        let stream = stream.core();
        if live_streams(&self.core.above).iter().any(|above| is_above(stream, above)) {
            return Err(AttachError::Circle(stream.name.clone()));
        }
        attach(stream, &stream.above, &self.core.below, key.clone(), self.attached(key, Side::Reader))
    }

    fn attached(&self, key: K, side: Side) -> Arc<Attached<K, L, M>> {
        Arc::new(Attached { core: Arc::downgrade(&self.core), key, side })
    }

    /// Detaches a stream above; returns whether there was one.
    pub fn unbind_above(&self, key: &K) -> bool {
        let _linking = linking();
        let upper = self.core.above.unbind(key).and_then(|stream| stream.0.upgrade());
        upper.map(|stream| stream.below.write().take()).is_some()
    }

    /// Detaches a stream below; returns whether there was one.
    pub fn unbind_below(&self, key: &K) -> bool {
        let _linking = linking();
        let lower = self.core.below.unbind(key).and_then(|stream| stream.0.upgrade());
        lower.map(|stream| stream.above.write().take()).is_some()
    }

    /// The identifiers of the streams above, in no certain order.
    #[must_use]
    pub fn above(&self) -> Vec<K> {
        self.core.above.bindings().into_iter().map(|(key, _)| key).collect()
    }

    /// The identifiers of the streams below, in no certain order.
    #[must_use]
    pub fn below(&self) -> Vec<K> {
        self.core.below.bindings().into_iter().map(|(key, _)| key).collect()
    }
}

/// Attaches an end of a stream.
fn attach<K: Clone + Eq + Hash, L: QueueStrategy, M: Lock>(
    stream: &Arc<StreamCore<L>>,
    end: &spandrel_sync::RwLock<Option<Beyond<L>>>,
    map: &MapManager<K, StreamHandle<L>, M>,
    key: K,
    attachment: Arc<dyn Attachment<L> + Send + Sync>,
) -> Result<(), AttachError> {
    if stream.is_closed() {
        return Err(AttachError::Closed(stream.name.clone()));
    }
    let mut end = end.write();
    if end.as_ref().is_some_and(Beyond::is_alive) {
        return Err(AttachError::Linked(stream.name.clone()));
    }
    map.bind(key, StreamHandle(Arc::downgrade(stream)))?;
    *end = Some(Beyond::Multiplexor(attachment));
    Ok(())
}

fn live_streams<K: Clone + Eq + Hash, L: QueueStrategy, M: Lock>(
    map: &MapManager<K, StreamHandle<L>, M>,
) -> Vec<Arc<StreamCore<L>>> {
    map.bindings().into_iter().filter_map(|(_, stream)| stream.0.upgrade()).collect()
}

/// Whether messages that go down in one stream can come to the other, or both are the same. Where tails are linked, messages
/// turn round, and never go down again by themselves.
fn is_above<L: QueueStrategy>(upper: &Arc<StreamCore<L>>, lower: &Arc<StreamCore<L>>) -> bool {
    let mut visited = vec![Arc::clone(upper)];
    let mut next = 0;
    while let Some(stream) = visited.get(next).cloned() {
        next += 1;
        if Arc::ptr_eq(&stream, lower) {
            return true;
        }
        let below = stream.below.read().clone();
        if let Some(Beyond::Multiplexor(attachment)) = below {
            for stream in attachment.next() {
                if !visited.iter().any(|known| Arc::ptr_eq(known, &stream)) {
                    visited.push(stream);
                }
            }
        }
    }
    false
}

/// An attached stream: its messages come down from a stream above, or up from one below.
struct Attached<K, L: QueueStrategy, M: Lock> {
    core: Weak<Core<K, L, M>>,
    key: K,
    /// The direction of its messages.
    side: Side,
}

impl<K: Clone + Eq + Hash, L: QueueStrategy, M: Lock> Core<K, L, M> {
    /// The streams from which messages of this direction come, and those to which they go.
    fn sources_and_targets(&self, side: Side) -> [&MapManager<K, StreamHandle<L>, M>; 2] {
        match side {
            Side::Writer => [&self.above, &self.below],
            Side::Reader => [&self.below, &self.above],
        }
    }
}

impl<K: Clone + Eq + Hash + 'static, L: QueueStrategy, M: Lock> Attachment<L> for Attached<K, L, M> {
    fn pass(&self, message: Message, sender: Sender<'_>) -> Result<(), PutError> {
        let unclaimed = |message| PutError { reason: PutFailure::Unclaimed, message };
        let Some(core) = self.core.upgrade() else { return Err(unclaimed(message)) };
        let key = match self.side {
            Side::Writer => core.router.down(&message, &self.key),
            Side::Reader => core.router.up(&message, &self.key),
        };
        let [_, to] = core.sources_and_targets(self.side);
        let stream = key.and_then(|key| to.find(&key)).and_then(|stream| stream.0.upgrade());
        match (stream, self.side) {
            (Some(stream), Side::Writer) => stream.put_down(message, sender),
            (Some(stream), Side::Reader) => stream.put_up(message, sender),
            (None, _) => Err(unclaimed(message)),
        }
    }

    fn next(&self) -> Vec<Arc<StreamCore<L>>> {
        self.core.upgrade().map(|core| live_streams(core.sources_and_targets(self.side)[1])).unwrap_or_default()
    }

    fn detach(&self) {
        self.core.upgrade().map(|core| core.sources_and_targets(self.side)[0].unbind(&self.key));
    }

    fn is_alive(&self) -> bool {
        self.core.strong_count() > 0
    }
}

impl<K: fmt::Debug, L: QueueStrategy, M: Lock> fmt::Debug for Multiplexor<K, L, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Multiplexor").field("above", &self.core.above).field("below", &self.core.below).finish()
    }
}
