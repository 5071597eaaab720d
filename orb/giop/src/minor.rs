//! The standard minor codes (OMG document omg/2003-01-04, the table behind CORBA 3.3 Part 1, Annex A).
//!
//! A minor code has a meaning only together with the exception that carries it. Spandrel's own codes are in
//! [`crate::ids`].

use crate::SystemExceptionKind;

/// The vendor minor codeset id of the OMG: the upper 20 bits of every code here.
pub const OMGVMCID: u32 = 0x4f4d_0000;

macro_rules! standard {
    ($($kind:ident { $($name:ident = $number:literal, $text:literal;)* })*) => {
        $($(
            #[doc = concat!("`", stringify!($kind), "` ", stringify!($number), ": ", $text, ".")]
            pub const $name: u32 = OMGVMCID | $number;
        )*)*

        /// The meaning of a standard minor code in an exception of this kind.
        #[must_use]
        pub fn describe(kind: SystemExceptionKind, minor: u32) -> Option<&'static str> {
            match kind {
                $(SystemExceptionKind::$kind => match minor {
                    $($name => Some($text),)*
                    _ => None,
                },)*
                _ => None,
            }
        }
    };
}

standard! {
    Unknown {
        UNLISTED_USER_EXCEPTION = 1, "an unlisted user exception was raised";
        UNSUPPORTED_SYSTEM_EXCEPTION = 2, "a system exception that this ORB does not know was raised";
    }
    BadParam {
        VALUE_FACTORY_REGISTRATION = 1, "a value factory could not be registered, unregistered or found";
        REPOSITORY_ID_EXISTS = 2, "the interface repository has a definition with this repository id already";
        NAME_USED_IN_CONTAINER = 3, "the container in the interface repository has a definition with this name already";
        INVALID_CONTAINER = 4, "the target in the interface repository cannot contain the definition";
        NAME_CLASH_IN_INHERITANCE = 5, "the name in the interface repository clashes with an inherited one";
        BAD_SCHEME_NAME = 7, "the scheme of a reference in text form is unknown";
        BAD_ADDRESS = 8, "the address of a reference in text form is malformed";
        BAD_SCHEME_SPECIFIC_PART = 9, "the part after the scheme of a reference in text form is malformed";
        BAD_URL_OTHER = 10, "a reference in text form cannot be used";
        INVALID_OBJECT_ID = 14, "an object id does not have the form that its text needs";
        BAD_NAME = 15, "a name in a TypeCode is malformed";
        BAD_REPOSITORY_ID = 16, "a repository id in a TypeCode is malformed";
        INVALID_MEMBER_NAME = 17, "the name of a member of a TypeCode is malformed";
        NOT_AN_EXCEPTION = 21, "the value given as an exception is not one";
        UNLISTED_EXCEPTION = 22, "the operation does not raise the given exception";
        NO_WCHAR_CODE_SET = 23, "the request carries wide characters, and its connection no code set for them";
        ENUM_OUT_OF_RANGE = 25, "an enum value is out of range";
        UNKNOWN_SERVICE_CONTEXT = 26, "the request has no service context with this id";
        REGISTER_NIL = 27, "a nil reference was registered as an initial reference";
        NO_SUCH_COMPONENT = 28, "the reference has no component with this id";
        NO_SUCH_PROFILE = 29, "the reference has no profile with this id";
        DUPLICATE_POLICY = 30, "two policies of the same type were given";
        INVALID_ONEWAY = 31, "a one-way operation was defined with a result, a returned parameter or an exception";
    }
    ImpLimit {
        NO_USABLE_PROFILE_IN_IOR = 1, "no profile of the reference can be used";
    }
    InvObjref {
        WCHAR_NOT_SUPPORTED = 1, "the server names no code set for wide characters";
        CODE_SETS_REQUIRED = 2, "wide characters need a code sets component";
    }
    Marshal {
        NO_VALUE_FACTORY = 1, "no value factory was found";
        LOCAL_OBJECT = 4, "a local object cannot be sent";
        WCHAR_BY_GIOP_1_0_CLIENT = 5, "a GIOP 1.0 client sent wide characters";
        WCHAR_BY_GIOP_1_0_SERVER = 6, "a GIOP 1.0 server sent wide characters";
        CODE_SETS_CHANGED = 9, "the code sets of a connection were named twice and differently";
    }
    NoImplement {
        NO_LOCAL_VALUE = 1, "the value has no local implementation";
        INCOMPATIBLE_VALUE = 2, "the value's implementation has an incompatible version";
        NO_USABLE_PROFILE_FOR_TYPE = 3, "no profile of the reference can be used";
        DII_ON_LOCAL_OBJECT = 4, "a local object takes no dynamic invocations";
        NOT_ON_LOCAL_OBJECT = 8, "a local object does not have this operation";
    }
    BadInvOrder {
        DEPENDENCY_EXISTS = 1, "a dependency in the interface repository prevents the destruction of this object";
        INDESTRUCTIBLE = 2, "the object of the interface repository cannot be destroyed";
        OPERATION_WOULD_DEADLOCK = 3, "the operation would deadlock";
        ORB_HAS_SHUTDOWN = 4, "the ORB has been shut down";
        SERVANT_MANAGER_ALREADY_SET = 6, "the adapter has a servant manager already";
        ARGUMENTS_OUT_OF_ORDER = 7, "the arguments of a dynamic request were requested twice, or after its exception was set";
        CTX_OUT_OF_ORDER = 8, "the context of a dynamic request was requested twice, before its arguments, or after its outcome was set";
        RESULT_OUT_OF_ORDER = 9, "the result of a dynamic request was set twice, before its arguments were requested, or after its exception was set";
        REQUEST_ALREADY_SENT = 10, "the request has already been sent";
        REQUEST_NOT_SENT = 11, "the request has not been sent yet";
        RESULT_ALREADY_RECEIVED = 12, "the result has already been received";
        REQUEST_IS_SYNCHRONOUS = 13, "the request was not sent deferred";
        INVALID_PI_CALL = 14, "this is not available at this interception point";
        SERVICE_CONTEXT_EXISTS = 15, "a service context with this id exists already";
        POLICY_FACTORY_REGISTERED = 16, "a policy factory is registered for this type already";
        POA_BEING_DESTROYED = 17, "the adapter is being destroyed";
        NO_POLLER_RESPONSE = 22, "the poller has not returned a response yet";
    }
    BadOperation {
        BAD_SERVANT_TYPE = 1, "the servant manager returned a servant of another type";
        UNKNOWN_OPERATION = 2, "the servant does not know the operation or attribute";
    }
    NoResources {
        PORTABLE_INTERCEPTOR_UNSUPPORTED = 1, "the binding does not offer this information to interceptors";
    }
    NoResponse {
        REPLY_NOT_AVAILABLE = 1, "the reply is not available yet";
    }
    Transient {
        REQUEST_DISCARDED = 1, "the adapter discarded the request for lack of resources, or is in the discarding state";
        NO_USABLE_PROFILE = 2, "no profile of the reference leads to its object";
        REQUEST_CANCELLED = 3, "the request was cancelled";
        POA_DESTROYED = 4, "the adapter has been destroyed";
    }
    ObjAdapter {
        UNKNOWN_ADAPTER_FAILED = 1, "the adapter activator raised a system exception";
        WRONG_SERVANT = 2, "the servant manager returned a servant of another type";
        NO_DEFAULT_SERVANT = 3, "the adapter has no default servant";
        NO_SERVANT_MANAGER = 4, "the adapter has no servant manager";
        INCARNATE_VIOLATED_POLICY = 5, "the servant activator violated a policy of the adapter";
        IOR_INTERCEPTOR_FAILED = 6, "an IOR interceptor prevented the creation of the adapter";
        NULL_SERVANT = 7, "the servant manager returned no servant";
    }
    DataConversion {
        CHARACTER_NOT_IN_CODE_SET = 1, "a character does not exist in the transmission code set";
        PRIORITY_MAPPING = 2, "the priority mapping has no value for a priority";
    }
    ObjectNotExist {
        UNREGISTERED_VALUE = 1, "a value was passed as a reference before it was activated";
        NO_SUCH_ADAPTER = 2, "the object's adapter does not exist and could not be created";
        ADAPTER_INACTIVE = 4, "the object's adapter is inactive";
    }
    InvPolicy {
        POLICY_CONFLICT = 1, "the reference's policies contradict those in force";
        UNKNOWN_POLICY_TYPE = 2, "no policy has this type";
        NO_POLICY_FACTORY = 3, "no factory creates policies of this type";
    }
    CodesetIncompatible {
        NO_COMMON_CODE_SET = 1, "client and server found no common code set";
        UNSUPPORTED_CODE_SET = 2, "the server does not know the code set that the client chose";
    }
    IntfRepos {
        NO_INTERFACE_REPOSITORY = 1, "no interface repository is available";
        NO_SUCH_INTERFACE = 2, "the interface repository does not know the interface";
    }
    // The table's list of changes shows that the OMG assigned 2 and 3; their order is taken from memory of
    // the text.
    Timeout {
        NO_REPLY_IN_TIME = 1, "no reply came within the poller's time-out";
        REQUEST_EXPIRED = 2, "the request's deadline for delivery has passed";
        ROUND_TRIP_EXPIRED = 3, "the deadline for the request's reply has passed";
    }
}
