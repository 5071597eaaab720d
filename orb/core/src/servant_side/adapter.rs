//! The core's view of object adapters: the location of objects, and the description of an upcall's target.

use spandrel_cdr::Ior;
use spandrel_demux::OperationDemux;
use spandrel_giop::SystemException;
use spandrel_sync::Arc;

use crate::{Policy, PolicyType};

/// The adapter's information on the object of an upcall.
///
/// It lives as long as the upcall; [`keep_in_use`](Self::keep_in_use) is for use beyond it.
pub trait Target: Sync {
    /// The object's id within its adapter.
    fn object_id(&self) -> &[u8];

    /// The adapter's id, unique within its ORB (CORBA 3.3 Part 1, 16.3.13.3).
    fn adapter_id(&self) -> &[u8];

    /// The names of the adapters from the root to the object's own (16.3.13.5).
    fn adapter_name(&self) -> Vec<String>;

    /// The adapter's policy of this type, if it has one.
    fn policy(&self, policy_type: PolicyType) -> Option<Policy>;

    /// The strategy for finding operations of the adapter's servants.
    fn operation_demux(&self) -> OperationDemux {
        OperationDemux::default()
    }

    /// Keeps the object in use for a request that is answered after the upcall.
    fn keep_in_use(&self) -> Arc<dyn KeptUse>;

    /// A function that does the same for the object of the calling thread's innermost upcall, once it is needed. `None` if
    /// the adapter has none.
    fn keep_later(&self) -> Option<fn() -> Arc<dyn KeptUse>> {
        None
    }
}

/// The use of a servant by a request that is answered after its upcall. The drop of the last reference ends it, too.
pub trait KeptUse: Send + Sync {
    /// Whether the use has to [end](Self::end) before the reply is sent.
    fn ends_before_reply(&self) -> bool {
        false
    }

    /// Ends the use, in the thread where the adapter's policies want that. Then calls `then` there, with the
    /// exception that a servant locator's `postinvoke` raised, if it did. Calls `then` at once if the use has ended before.
    fn end(&self, then: Box<dyn FnOnce(Result<(), SystemException>) + Send>);

    /// Calls `poll`, which polls the future that serves the request: `PortableServer::Current` has the request's object
    /// meanwhile. The use may have ended.
    fn poll_inside(&self, poll: &mut dyn FnMut()) {
        poll();
    }
}

/// The interfaces that a servant supports.
pub trait SupportedInterfaces {
    /// The repository id of the most derived interface.
    fn repository_id(&self) -> &str;

    /// Whether the servant supports the interface with this repository id.
    fn is_a(&self, repository_id: &str) -> bool;
}

/// The answer to a LocateRequest.
#[derive(Clone, Debug, PartialEq)]
pub enum Located {
    /// In this server, which may have to activate it for a request.
    Here,
    /// Unknown to this server.
    Unknown,
    /// Behind another reference, for now.
    Forward(Ior),
    /// Behind another reference; this one is invalid from now on. GIOP 1.0 and 1.1 cannot express this.
    ForwardPermanently(Ior),
}

/// An adapter's treatment of requests (`PortableInterceptor::AdapterState`, 16.5.5).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(i16)]
pub enum AdapterState {
    /// Requests wait until the adapter's manager is activated.
    Holding = 0,
    /// Requests are given to servants.
    Active = 1,
    /// Requests are refused for now.
    Discarding = 2,
    /// Requests are refused for ever.
    Inactive = 3,
    /// The adapter does not exist any more.
    NonExistent = 4,
}

/// The policies and the state of a new adapter, for IOR interceptors.
pub trait AdapterDescription {
    /// The names of the adapters from the root to itself.
    fn adapter_name(&self) -> Vec<String>;

    /// The id of the POA manager that decides about the requests of this adapter.
    fn manager_id(&self) -> &str;

    /// The treatment of requests at present, which its manager decides.
    fn state(&self) -> AdapterState;

    /// Its policy of this type, if it has one.
    fn policy(&self, policy_type: PolicyType) -> Option<Policy>;
}
