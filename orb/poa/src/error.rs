//! Errors of operations on adapters and managers, and the system exceptions of both.

use spandrel_giop::{CompletionStatus, SystemException, ids, minor};
use spandrel_orb::{IntoError, generated::SystemVariant};

use crate::{ObjectId, adapter_name::full_name_text};

/// The error of an operation on an adapter: one of the user exceptions of `PortableServer`, or a system
/// exception.
///
/// `adapter` is the path of the adapter, such as `RootPOA/accounts`.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_poa::Poa; pub mod poa { pub use spandrel_poa::*; } pub mod server { pub use spandrel_server::*; } }
/// use spandrel::poa::{IdAssignmentPolicy, PoaError};
/// use spandrel::{Orb, Poa};
///
/// let orb = Orb::builder().build()?;
/// let accounts = Poa::root(&orb)?.create_poa("accounts", None, [IdAssignmentPolicy::UserId.into()])?;
/// match accounts.deactivate_object(&"ada".into()) {
///     Err(PoaError::ObjectNotActive { id, .. }) => assert_eq!(id.as_bytes(), b"ada"), // It was not in use.
///     other => other?,
/// }
/// let error = accounts.create_reference("IDL:Bank/Account:1.0").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the operation requires the policies SYSTEM_ID, which the adapter `RootPOA/accounts` does not have"
/// );
/// # orb.shutdown()?;
/// # Ok::<(), PoaError>(())
/// ```
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PoaError {
    /// The parent already has a child of this name (15.3.9.2).
    #[error("the adapter `{adapter}` exists already: find it with `find_poa`, or choose another name")]
    AdapterAlreadyExists {
        /// The full name of the child.
        adapter: String,
    },
    /// There is no child of this name, and none could be created (15.3.9.3).
    #[error("the adapter `{adapter}` does not exist, and no adapter activator has created it")]
    AdapterNonExistent {
        /// The full name of the child.
        adapter: String,
    },
    /// A policy is not valid, or contradicts others (15.3.9.2).
    #[error("cannot create the adapter `{adapter}`: the policy `{policy}` {}: {reason}", clash_text(clash.as_deref()))]
    InvalidPolicy {
        /// The adapter that was to be created.
        adapter: String,
        /// The index of the policy in the list, from 0 on.
        index: u16,
        /// The policy and its value, as `Debug` prints it.
        policy: String,
        /// The policy that it contradicts, given or the default of its type; `None` if the policy itself is invalid.
        clash: Option<String>,
        /// The rule that it violates.
        reason: &'static str,
    },
    /// There is no default servant (15.3.9.11).
    #[error("the adapter `{adapter}` has no default servant: `set_servant` sets one")]
    NoServant {
        /// The full name of the adapter.
        adapter: String,
    },
    /// The object has a servant already.
    #[error("cannot activate the object `{}` of the adapter `{adapter}`: it is active already", id.escape_ascii())]
    ObjectAlreadyActive {
        /// The full name of the adapter.
        adapter: String,
        /// The id of the active object.
        id: ObjectId,
    },
    /// The object has no servant.
    #[error("the object `{}` of the adapter `{adapter}` is not active", id.escape_ascii())]
    ObjectNotActive {
        /// The full name of the adapter.
        adapter: String,
        /// The id that is not active.
        id: ObjectId,
    },
    /// The servant serves another object, and the adapter has UNIQUE_ID.
    #[error(
        "cannot activate the servant: it serves the object `{}` of the adapter `{adapter}`, and only MULTIPLE_ID \
         permits several objects",
        id.escape_ascii()
    )]
    ServantAlreadyActive {
        /// The full name of the adapter.
        adapter: String,
        /// The object that it serves.
        id: ObjectId,
    },
    /// The servant serves no object.
    #[error("no object of the adapter `{adapter}` has this servant of type `{interface}`")]
    ServantNotActive {
        /// The full name of the adapter.
        adapter: String,
        /// The repository id of the servant's interface.
        interface: String,
    },
    /// Another adapter created the reference.
    #[error("the reference of type `{interface}` was not created by the adapter `{adapter}`")]
    WrongAdapter {
        /// The adapter of the operation.
        adapter: String,
        /// The repository id in the reference.
        interface: String,
    },
    /// The adapter's policies do not permit the operation.
    #[error("the operation requires the policies {required}, which the adapter `{adapter}` does not have")]
    WrongPolicy {
        /// The full name of the adapter.
        adapter: String,
        /// The policies that the operation requires.
        required: &'static str,
    },
    /// The manager is inactive, permanently (15.3.2).
    #[error("the manager `{manager}` is inactive, permanently: its adapters need a new manager")]
    AdapterInactive {
        /// The id of the manager.
        manager: String,
    },
    /// A manager of this id exists (15.3.3).
    #[error("the manager `{manager}` exists already: `PoaManagerFactory::find` returns it")]
    ManagerAlreadyExists {
        /// The id of the manager.
        manager: String,
    },
    /// A system exception of the ORB or of a servant manager.
    #[error("{0}")]
    System(#[from] SystemException),
}
spandrel_error::debug_as_report!(PoaError);

impl<E: SystemVariant> IntoError<E> for PoaError {
    fn into_error(self) -> E {
        E::from_system(self.into())
    }
}

/// The predicate of an invalid policy.
fn clash_text(clash: Option<&str>) -> String {
    clash.map_or_else(|| "is invalid".to_owned(), |other| format!("contradicts `{other}`"))
}

impl From<PoaError> for SystemException {
    /// For operations that raise system exceptions only: the other errors become OBJ_ADAPTER with their text.
    fn from(error: PoaError) -> Self {
        match error {
            PoaError::System(exception) => exception,
            other => Self::obj_adapter(0, CompletionStatus::No).with_detail(|| other.to_string()),
        }
    }
}

/// The key is unknown, or its object has no servant and none can be supplied (15.2.6).
pub(crate) fn not_active() -> SystemException {
    SystemException::object_not_exist(ids::OBJECT_NOT_EXIST_KEY, CompletionStatus::No)
        .with_detail("no servant is active for the object key, and the adapter has no other way to find one")
}

/// The object's adapter does not exist and could not be created (15.3.4.1).
pub(crate) fn no_adapter() -> SystemException {
    SystemException::object_not_exist(minor::NO_SUCH_ADAPTER, CompletionStatus::No)
        .with_detail("the adapter named in the object key does not exist, and no adapter activator created it")
}

/// As [`no_adapter`], for an adapter whose path is in the object key, so that the client knows it.
pub(crate) fn no_adapter_at(path: &[&str]) -> SystemException {
    no_adapter()
        .with_public_detail(|| format!("the adapter `{}` does not exist", path.join("/")))
        .with_detail(|| format!("the adapter `{}` does not exist, and no adapter activator created it", path.join("/")))
}

/// The adapter of the called operation has been destroyed (15.3.9.4).
pub(crate) fn destroyed(adapter: &[String]) -> SystemException {
    SystemException::object_not_exist(minor::NO_SUCH_ADAPTER, CompletionStatus::No)
        .with_detail(|| format!("the adapter `{}` has been destroyed", full_name_text(adapter)))
}

/// The wait would never end, since the caller is part of the awaited work.
pub(crate) fn would_deadlock() -> SystemException {
    SystemException::bad_inv_order(minor::OPERATION_WOULD_DEADLOCK, CompletionStatus::No)
        .with_detail("the operation cannot wait for itself inside an upcall of the same ORB")
}

/// Too many requests wait already.
pub(crate) fn discarded(why: &'static str) -> SystemException {
    SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No).with_detail(why)
}

/// An id that an adapter with SYSTEM_ID did not assign (15.3.9.17).
pub(crate) fn id_not_assigned(adapter: &[String], id: &[u8]) -> SystemException {
    SystemException::bad_param(minor::INVALID_OBJECT_ID, CompletionStatus::No).with_detail(|| {
        let (adapter, id) = (full_name_text(adapter), id.escape_ascii());
        format!("the adapter `{adapter}` assigns its object ids itself, and did not assign `{id}`")
    })
}

/// All ids are in use.
pub(crate) fn no_more_ids() -> SystemException {
    SystemException::no_resources(0, CompletionStatus::No).with_detail("all object ids are in use")
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use spandrel_orb::{Orb, Policy};
    use spandrel_server::Servant;
    use spandrel_sync::Arc;

    use super::*;
    use crate::{
        EtherealizeObjects, IdAssignmentPolicy::UserId, IdUniquenessPolicy::MultipleId, IfMissing, Poa,
        RequestProcessingPolicy::UseDefaultServant, WaitForCompletion,
    };

    struct Account;

    impl Servant for Account {
        fn repository_id(&self) -> &str {
            "IDL:Bank/Account:1.0"
        }

        fn is_a(&self, _: &str) -> bool {
            false
        }
    }

    fn text<T>(result: Result<T, impl Into<PoaError>>) -> String {
        result.err().expect("the operation is rejected").into().to_string()
    }

    #[test]
    fn errors_name_the_adapter_the_object_and_the_reason() {
        let orb = Orb::builder().build().unwrap();
        let root = Poa::root(&orb).unwrap();
        let accounts = root.create_poa("accounts", None, [UserId.into()]).unwrap();
        let servant: Arc<dyn Servant> = Arc::new(Account);
        let [ada, alan] = ["ada", "alan"].map(ObjectId::from);
        accounts.activate_object_with_id(&ada, Arc::clone(&servant)).unwrap();
        let foreign = root.create_reference("IDL:Bank/Account:1.0").unwrap();
        let contradictory: [Policy; 2] = [MultipleId.into(), MultipleId.into()];
        let by_default = root.create_poa("default", None, [MultipleId.into(), UseDefaultServant.into()]).unwrap();
        let expected = [
            (
                text(root.create_poa("accounts", None, [])),
                "the adapter `RootPOA/accounts` exists already: find it with `find_poa`, or choose another name",
            ),
            (
                text(accounts.find_poa("old", IfMissing::Activate)),
                "the adapter `RootPOA/accounts/old` does not exist, and no adapter activator has created it",
            ),
            (
                text(root.create_poa("new", None, [UseDefaultServant.into()])),
                "cannot create the adapter `RootPOA/new`: the policy `UseDefaultServant` contradicts `UniqueId`: \
                 USE_DEFAULT_SERVANT requires MULTIPLE_ID",
            ),
            (
                text(root.create_poa("new", None, contradictory)),
                "cannot create the adapter `RootPOA/new`: the policy `MultipleId` contradicts `MultipleId`: an adapter \
                 has one policy of each type",
            ),
            (
                text(by_default.servant()),
                "the adapter `RootPOA/default` has no default servant: `set_servant` sets one",
            ),
            (
                text(accounts.activate_object_with_id(&ada, Arc::new(Account))),
                "cannot activate the object `ada` of the adapter `RootPOA/accounts`: it is active already",
            ),
            (
                text(accounts.deactivate_object(&alan)),
                "the object `alan` of the adapter `RootPOA/accounts` is not active",
            ),
            (
                text(accounts.activate_object_with_id(&alan, servant)),
                "cannot activate the servant: it serves the object `ada` of the adapter `RootPOA/accounts`, and only \
                 MULTIPLE_ID permits several objects",
            ),
            (
                text(accounts.servant_to_id(&(Arc::new(Account) as Arc<dyn Servant>))),
                "no object of the adapter `RootPOA/accounts` has this servant of type `IDL:Bank/Account:1.0`",
            ),
            (
                text(accounts.reference_to_id(&foreign)),
                "the reference of type `IDL:Bank/Account:1.0` was not created by the adapter `RootPOA/accounts`",
            ),
            (
                text(accounts.activate_object(Arc::new(Account))),
                "the operation requires the policies SYSTEM_ID and RETAIN, which the adapter `RootPOA/accounts` does \
                 not have",
            ),
            (
                text(root.the_poa_manager_factory().create("RootPOAManager", [])),
                "the manager `RootPOAManager` exists already: `PoaManagerFactory::find` returns it",
            ),
        ];
        for (text, expected) in expected {
            assert_eq!(text, expected);
        }
        let manager = accounts.the_poa_manager();
        manager.deactivate(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
        let inactive =
            format!("the manager `{}` is inactive, permanently: its adapters need a new manager", manager.id());
        assert_eq!(text(manager.activate()), inactive);
        orb.shutdown().unwrap();
    }
}
