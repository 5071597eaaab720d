//! The kinds of system exceptions (CORBA 3.3 Part 1, Annex A).

/// Passes the standard's list of exceptions to the macro with this name: kind, constructor, IDL name,
/// meaning.
macro_rules! for_each_kind {
    ($with:ident) => {
        $with! {
            Unknown unknown "UNKNOWN" "an exception without a more specific kind";
            BadParam bad_param "BAD_PARAM" "a parameter that cannot be accepted";
            NoMemory no_memory "NO_MEMORY" "no memory was left";
            ImpLimit imp_limit "IMP_LIMIT" "a limit of the implementation was exceeded";
            CommFailure comm_failure "COMM_FAILURE" "communication failed during the request";
            InvObjref inv_objref "INV_OBJREF" "a reference that is malformed or cannot be invoked";
            NoPermission no_permission "NO_PERMISSION" "the caller lacks a privilege";
            Internal internal "INTERNAL" "a fault inside the ORB";
            Marshal marshal "MARSHAL" "octets that are not the expected value, or a value that cannot be sent";
            Initialize initialize "INITIALIZE" "the ORB could not be initialised";
            NoImplement no_implement "NO_IMPLEMENT" "the operation exists and is not implemented";
            BadTypecode bad_typecode "BAD_TYPECODE" "a malformed TypeCode";
            BadOperation bad_operation "BAD_OPERATION" "the object has no such operation";
            NoResources no_resources "NO_RESOURCES" "a resource was exhausted";
            NoResponse no_response "NO_RESPONSE" "the reply has not arrived yet";
            PersistStore persist_store "PERSIST_STORE" "persistent storage failed";
            BadInvOrder bad_inv_order "BAD_INV_ORDER" "operations were called in the wrong order";
            Transient transient "TRANSIENT" "the request was not delivered and may be tried again";
            FreeMem free_mem "FREE_MEM" "memory could not be freed";
            InvIdent inv_ident "INV_IDENT" "a malformed identifier";
            InvFlag inv_flag "INV_FLAG" "an invalid flag";
            IntfRepos intf_repos "INTF_REPOS" "the interface repository failed";
            BadContext bad_context "BAD_CONTEXT" "a context lacks what the operation needs";
            ObjAdapter obj_adapter "OBJ_ADAPTER" "the object adapter failed";
            DataConversion data_conversion "DATA_CONVERSION" "a value does not exist in the peer's representation";
            ObjectNotExist object_not_exist "OBJECT_NOT_EXIST" "the object has been destroyed";
            TransactionRequired transaction_required "TRANSACTION_REQUIRED" "the operation needs a transaction";
            TransactionRolledback transaction_rolledback "TRANSACTION_ROLLEDBACK" "the transaction was rolled back";
            InvalidTransaction invalid_transaction "INVALID_TRANSACTION" "the transaction context is invalid";
            InvPolicy inv_policy "INV_POLICY" "policies contradict each other";
            CodesetIncompatible codeset_incompatible "CODESET_INCOMPATIBLE" "client and server share no code set";
            Rebind rebind "REBIND" "the request would rebind, and a policy forbids it";
            Timeout timeout "TIMEOUT" "the request's time has passed";
            TransactionUnavailable transaction_unavailable "TRANSACTION_UNAVAILABLE" "no transaction service can be reached";
            TransactionMode transaction_mode "TRANSACTION_MODE" "the transaction policy does not fit the request";
            BadQos bad_qos "BAD_QOS" "the quality of service cannot be provided";
            InvalidActivity invalid_activity "INVALID_ACTIVITY" "the activity context is invalid";
            ActivityCompleted activity_completed "ACTIVITY_COMPLETED" "the activity has ended";
            ActivityRequired activity_required "ACTIVITY_REQUIRED" "the operation needs an activity";
            ThreadCancelled thread_cancelled "THREAD_CANCELLED" "the thread was cancelled";
        }
    };
}

macro_rules! kinds {
    ($($kind:ident $constructor:ident $name:literal $doc:literal;)*) => {
        /// The kind of a system exception, as the standard lists it.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum SystemExceptionKind {
            $(#[doc = concat!("`", $name, "`: ", $doc, ".")] $kind,)*
        }

        impl SystemExceptionKind {
            /// Every kind, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// The exception's IDL name, such as `COMM_FAILURE`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// The id by which replies name the exception.
            #[must_use]
            pub const fn repository_id(self) -> &'static str {
                match self { $(Self::$kind => concat!("IDL:omg.org/CORBA/", $name, ":1.0"),)* }
            }
        }
    };
}

for_each_kind!(kinds);

impl SystemExceptionKind {
    /// The kind with this repository id; `None` for ids of other exceptions.
    #[must_use]
    pub fn from_repository_id(repository_id: &str) -> Option<Self> {
        let name = repository_id.strip_prefix("IDL:omg.org/CORBA/")?.strip_suffix(":1.0")?;
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

pub(crate) use for_each_kind;
