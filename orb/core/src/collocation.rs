//! How objects of the same ORB are called (paper 001's collocation strategies).

/// How calls on objects of the same ORB reach their servants.
///
/// | | path | costs |
/// | --- | --- | --- |
/// | [`Direct`](Self::Direct) | the stub calls the servant's method, if the IDL compiler was asked for that (`--collocation direct`) | an adapter's look-up and a virtual call |
/// | [`ThroughPoa`](Self::ThroughPoa) | marshaled, and dispatched by the adapter in the calling thread | what marshaling costs |
/// | [`No`](Self::No) | as to any other server | a round trip through the system |
///
/// All three are seen alike by programs, apart from time: states of adapters, exceptions, time-outs. Since the servant runs in the calling thread, a time-out of the
/// call cannot end it early: the call ends in TIMEOUT once the servant has returned. Recursion through such calls is as deep as the thread's stack.
/// Calls that must not wait for the servant (one-ways, asynchronous calls) go the way of [`No`](Self::No).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Collocation {
    /// Without marshaling where the stub can do it, otherwise through the adapter.
    Direct,
    /// Through the adapter.
    #[default]
    ThroughPoa,
    /// Through a socket.
    No,
}
