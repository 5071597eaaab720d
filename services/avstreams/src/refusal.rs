//! The reasons why operations on streams fail, as the exceptions of the specification.

use std::io;

use spandrel::services::av_streams as av;
use spandrel::services::av_streams::{
    AlreadyConnected, FailedToConnect, FailedToListen, FepMismatch, FormatMismatch, FpError, NoSuchFlow, NotConnected,
    NotSupported, PropertyException, QoSRequestFailed, StreamOpDenied, StreamOpFailed,
};
use spandrel::{CompletionStatus, SystemException};

use crate::flow_spec::FlowSpecError;

/// The reason why an operation on a stream failed.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    NoSuchFlow,
    Qos(String),
    Failed(String),
    Denied(String),
    /// The flow whose protocol is not possible.
    Protocol(String),
    NotSupported,
    Property,
    AlreadyConnected,
    NotConnected,
    FormatMismatch,
    EndMismatch,
    System(SystemException),
}

impl From<SystemException> for Refusal {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<FlowSpecError> for Refusal {
    fn from(error: FlowSpecError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Refusal {
    /// The text of the reason, for exceptions that have one.
    pub(crate) fn reason(self) -> String {
        match self {
            Self::Qos(reason) | Self::Failed(reason) | Self::Denied(reason) => reason,
            Self::NoSuchFlow => "no flow has this name".to_owned(),
            Self::Protocol(flow) => format!("the flow `{flow}` has no such protocol"),
            Self::NotSupported => "the operation is not supported".to_owned(),
            Self::Property => "a setting is unknown or has a wrong value".to_owned(),
            Self::AlreadyConnected => "the flow has a connection".to_owned(),
            Self::NotConnected => "the flow has no connection".to_owned(),
            Self::FormatMismatch => "the parties have no common format".to_owned(),
            Self::EndMismatch => "the flow end points cannot be connected".to_owned(),
            Self::System(exception) => exception.to_string(),
        }
    }
}

/// Converts the reasons that an operation raises. Others go into the exception that has a text, or else are unknown.
macro_rules! exceptions {
    ($($error:path[$($rest:ident)?]: $($reason:pat => $exception:expr),*;)*) => {$(
        impl From<Refusal> for $error {
            fn from(refusal: Refusal) -> Self {
                match refusal {
                    $($reason => $exception.into(),)*
                    Refusal::System(exception) => exception.into(),
                    other => exceptions!(@rest other $($rest)?),
                }
            }
        }
    )*};
    (@rest $other:ident $rest:ident) => { $rest { reason: $other.reason() }.into() };
    (@rest $other:ident) => {
        SystemException::unknown(0, CompletionStatus::Maybe).with_detail(move || $other.clone().reason()).into()
    };
}

exceptions! {
    av::NoSuchFlowError[]: Refusal::NoSuchFlow => NoSuchFlow {};
    av::NoSuchFlowOrQoSRequestFailedError[QoSRequestFailed]: Refusal::NoSuchFlow => NoSuchFlow {};
    av::FpErrorOrNoSuchFlowError[]: Refusal::NoSuchFlow => NoSuchFlow {}, Refusal::Protocol(flow_name) => FpError { flow_name };
    av::NoSuchFlowOrNotSupportedError[]: Refusal::NoSuchFlow => NoSuchFlow {}, Refusal::NotSupported => NotSupported {};
    av::NoSuchFlowOrQoSRequestFailedOrStreamOpFailedError[StreamOpFailed]: Refusal::NoSuchFlow => NoSuchFlow {}, Refusal::Qos(reason) => QoSRequestFailed { reason };
    av::PropertyExceptionOrStreamOpFailedError[StreamOpFailed]: Refusal::Property => PropertyException {};
    av::NotSupportedError[]: Refusal::NotSupported => NotSupported {};
    av::MmDeviceCreateAError[StreamOpFailed]: Refusal::NoSuchFlow => NoSuchFlow {}, Refusal::NotSupported => NotSupported {}, Refusal::Qos(reason) => QoSRequestFailed { reason }, Refusal::Denied(reason) => StreamOpDenied { reason };
    av::NotSupportedOrStreamOpFailedError[StreamOpFailed]: Refusal::NotSupported => NotSupported {};
    av::NoSuchFlowOrNotSupportedOrStreamOpFailedError[StreamOpFailed]: Refusal::NoSuchFlow => NoSuchFlow {}, Refusal::NotSupported => NotSupported {};
    av::FpErrorOrNoSuchFlowOrQoSRequestFailedOrStreamOpDeniedError[StreamOpDenied]: Refusal::NoSuchFlow => NoSuchFlow {}, Refusal::Protocol(flow_name) => FpError { flow_name }, Refusal::Qos(reason) => QoSRequestFailed { reason };
    av::NoSuchFlowOrStreamOpFailedError[StreamOpFailed]: Refusal::NoSuchFlow => NoSuchFlow {};
    av::NoSuchFlowOrNotSupportedOrQoSRequestFailedOrStreamOpFailedError[StreamOpFailed]: Refusal::NoSuchFlow => NoSuchFlow {}, Refusal::NotSupported => NotSupported {}, Refusal::Qos(reason) => QoSRequestFailed { reason };
    av::FpErrorOrNoSuchFlowOrQoSRequestFailedOrStreamOpFailedError[StreamOpFailed]: Refusal::NoSuchFlow => NoSuchFlow {}, Refusal::Protocol(flow_name) => FpError { flow_name }, Refusal::Qos(reason) => QoSRequestFailed { reason };
    av::StreamOpFailedError[StreamOpFailed]: Refusal::Failed(reason) => StreamOpFailed { reason };
    av::QoSRequestFailedOrStreamOpFailedError[StreamOpFailed]: Refusal::Qos(reason) => QoSRequestFailed { reason };
    av::FailedToConnectOrFpErrorOrNotSupportedOrQoSRequestFailedError[FailedToConnect]: Refusal::NotSupported => NotSupported {}, Refusal::Protocol(flow_name) => FpError { flow_name }, Refusal::Qos(reason) => QoSRequestFailed { reason };
    av::NotConnectedOrNotSupportedError[]: Refusal::NotConnected => NotConnected {}, Refusal::NotSupported => NotSupported {};
    av::FpErrorOrNotSupportedError[]: Refusal::Protocol(flow_name) => FpError { flow_name }, Refusal::NotSupported => NotSupported {};
    av::DeviceQosMismatchOrFormatMismatchError[]: Refusal::FormatMismatch => FormatMismatch {};
    av::QoSRequestFailedError[QoSRequestFailed]: Refusal::Qos(reason) => QoSRequestFailed { reason };
    av::FailedToConnectOrFpErrorOrQoSRequestFailedError[FailedToConnect]: Refusal::Protocol(flow_name) => FpError { flow_name }, Refusal::Qos(reason) => QoSRequestFailed { reason };
    av::FailedToListenOrFpErrorOrQoSRequestFailedError[FailedToListen]: Refusal::Protocol(flow_name) => FpError { flow_name }, Refusal::Qos(reason) => QoSRequestFailed { reason };
    av::NotSupportedOrQoSRequestFailedOrStreamOpDeniedOrStreamOpFailedError[StreamOpFailed]: Refusal::NotSupported => NotSupported {}, Refusal::Qos(reason) => QoSRequestFailed { reason }, Refusal::Denied(reason) => StreamOpDenied { reason };
    av::QoSRequestFailedOrStreamOpDeniedOrStreamOpFailedError[StreamOpFailed]: Refusal::Qos(reason) => QoSRequestFailed { reason }, Refusal::Denied(reason) => StreamOpDenied { reason };
    av::AlreadyConnectedOrFepMismatchOrFormatMismatchError[]: Refusal::AlreadyConnected => AlreadyConnected {}, Refusal::FormatMismatch => FormatMismatch {}, Refusal::EndMismatch => FepMismatch {};
    av::AlreadyConnectedOrNotSupportedError[]: Refusal::AlreadyConnected => AlreadyConnected {}, Refusal::NotSupported => NotSupported {};
    av::AlreadyConnectedError[]: Refusal::AlreadyConnected => AlreadyConnected {};
    av::NotConnectedError[]: Refusal::NotConnected => NotConnected {};
}

/// Converts the errors that calls of the other party return into reasons.
macro_rules! reasons {
    ($($error:ident: $($variant:ident($exception:ident) => $reason:expr),*;)*) => {$(
        impl From<av::$error> for Refusal {
            fn from(error: av::$error) -> Self {
                match error {
                    $(av::$error::$variant($exception) => $reason,)*
                    av::$error::System(exception) => Self::System(exception),
                }
            }
        }
    )*};
}

reasons! {
    NoSuchFlowError: NoSuchFlow(_e) => Self::NoSuchFlow;
    NoSuchFlowOrQoSRequestFailedError: NoSuchFlow(_e) => Self::NoSuchFlow, QoSRequestFailed(e) => Self::Qos(e.reason);
    FpErrorOrNoSuchFlowError: NoSuchFlow(_e) => Self::NoSuchFlow, FpError(e) => Self::Protocol(e.flow_name);
    NoSuchFlowOrQoSRequestFailedOrStreamOpFailedError: NoSuchFlow(_e) => Self::NoSuchFlow,
        QoSRequestFailed(e) => Self::Qos(e.reason), StreamOpFailed(e) => Self::Failed(e.reason);
    MmDeviceCreateAError: NoSuchFlow(_e) => Self::NoSuchFlow, QoSRequestFailed(e) => Self::Qos(e.reason),
        StreamOpFailed(e) => Self::Failed(e.reason), StreamOpDenied(e) => Self::Denied(e.reason),
        NotSupported(_e) => Self::NotSupported;
    FpErrorOrNoSuchFlowOrQoSRequestFailedOrStreamOpDeniedError: NoSuchFlow(_e) => Self::NoSuchFlow,
        QoSRequestFailed(e) => Self::Qos(e.reason), StreamOpDenied(e) => Self::Denied(e.reason),
        FpError(e) => Self::Protocol(e.flow_name);
    NoSuchFlowOrStreamOpFailedError: NoSuchFlow(_e) => Self::NoSuchFlow, StreamOpFailed(e) => Self::Failed(e.reason);
    NoSuchFlowOrNotSupportedOrQoSRequestFailedOrStreamOpFailedError: NoSuchFlow(_e) => Self::NoSuchFlow,
        QoSRequestFailed(e) => Self::Qos(e.reason), StreamOpFailed(e) => Self::Failed(e.reason),
        NotSupported(_e) => Self::NotSupported;
    NoSuchFlowOrNotSupportedOrStreamOpFailedError: NoSuchFlow(_e) => Self::NoSuchFlow,
        StreamOpFailed(e) => Self::Failed(e.reason), NotSupported(_e) => Self::NotSupported;
    FpErrorOrNoSuchFlowOrQoSRequestFailedOrStreamOpFailedError: NoSuchFlow(_e) => Self::NoSuchFlow,
        QoSRequestFailed(e) => Self::Qos(e.reason), StreamOpFailed(e) => Self::Failed(e.reason),
        FpError(e) => Self::Protocol(e.flow_name);
    QoSRequestFailedOrStreamOpFailedError: QoSRequestFailed(e) => Self::Qos(e.reason),
        StreamOpFailed(e) => Self::Failed(e.reason);
    StreamOpFailedError: StreamOpFailed(e) => Self::Failed(e.reason);
    PropertyExceptionOrStreamOpFailedError: PropertyException(_e) => Self::Property,
        StreamOpFailed(e) => Self::Failed(e.reason);
    NotSupportedError: NotSupported(_e) => Self::NotSupported;
    FailedToListenOrFpErrorOrQoSRequestFailedError: FailedToListen(e) => Self::Failed(e.reason),
        FpError(e) => Self::Protocol(e.flow_name), QoSRequestFailed(e) => Self::Qos(e.reason);
    FailedToConnectOrFpErrorOrQoSRequestFailedError: FailedToConnect(e) => Self::Failed(e.reason),
        FpError(e) => Self::Protocol(e.flow_name), QoSRequestFailed(e) => Self::Qos(e.reason);
    NotSupportedOrQoSRequestFailedOrStreamOpDeniedOrStreamOpFailedError: NotSupported(_e) => Self::NotSupported,
        QoSRequestFailed(e) => Self::Qos(e.reason), StreamOpDenied(e) => Self::Denied(e.reason),
        StreamOpFailed(e) => Self::Failed(e.reason);
    QoSRequestFailedError: QoSRequestFailed(e) => Self::Qos(e.reason);
    NotConnectedError: NotConnected(_e) => Self::NotConnected;
    AlreadyConnectedOrFepMismatchOrFormatMismatchError: AlreadyConnected(_e) => Self::AlreadyConnected,
        FepMismatch(_e) => Self::EndMismatch, FormatMismatch(_e) => Self::FormatMismatch;
    AlreadyConnectedError: AlreadyConnected(_e) => Self::AlreadyConnected;
}
