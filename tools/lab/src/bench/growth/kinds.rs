//! The kinds of calls.

use serde::{Deserialize, Serialize};
use spandrel::dynamic::{Request, RequestError};
use spandrel::{SystemException, types::Typed};

use super::stage::Stage;
use crate::future::block_on;
use crate::mechanism::generated::growth::growing::RefuseError;
use crate::workload::named;

/// Too long for any inline storage of strings.
const TEXT: &str = "a text that is longer than what fits beside a pointer";

/// A kind of call whose resources should not grow with the number of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A two-way call without parameters.
    TwoWay,
    /// A call that returns its text.
    Echo,
    /// A call that raises a user exception.
    Exception,
    /// A one-way call, without a reply.
    OneWay,
    /// A LocateRequest without a call.
    Locate,
    /// An object that is created, called and destroyed.
    Churn,
    /// A call during which the server calls back.
    CallBack,
    /// A call whose reply is a future.
    Asynchronous,
    /// A call answered after its upcall has returned.
    Deferred,
    /// A call through the dynamic invocation interface.
    Dynamic,
    /// A text, echoed within the server's own ORB.
    Collocated,
}

impl Kind {
    /// All kinds in the order of reports.
    pub const ALL: [Self; 11] = [
        Self::TwoWay,
        Self::Echo,
        Self::Exception,
        Self::OneWay,
        Self::Locate,
        Self::Churn,
        Self::CallBack,
        Self::Asynchronous,
        Self::Deferred,
        Self::Dynamic,
        Self::Collocated,
    ];

    /// The name that options and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TwoWay => "two-way",
            Self::Echo => "echo",
            Self::Exception => "exception",
            Self::OneWay => "one-way",
            Self::Locate => "locate",
            Self::Churn => "churn",
            Self::CallBack => "call-back",
            Self::Asynchronous => "asynchronous",
            Self::Deferred => "deferred",
            Self::Dynamic => "dynamic",
            Self::Collocated => "collocated",
        }
    }

    /// The number of requests that [`make`](Self::make) sends.
    pub(super) fn calls(self) -> u64 {
        match self {
            Self::Churn => 3,
            Self::CallBack => 2,
            _ => 1,
        }
    }

    /// Makes one call.
    ///
    /// # Errors
    /// Its error, unless that is the expected result.
    pub(super) fn make(self, stage: &Stage) -> Result<(), SystemException> {
        let target = &stage.target;
        match self {
            Self::TwoWay => target.ping(),
            Self::Echo => target.echo(TEXT).map(drop),
            Self::Exception => match target.refuse() {
                Err(RefuseError::Refused(_)) => Ok(()),
                Err(RefuseError::System(exception)) => Err(exception),
                Ok(()) => Err(SystemException::internal(0, spandrel::CompletionStatus::Yes)),
            },
            Self::OneWay => target.note(7),
            Self::Locate => spandrel::types::Interface::as_object(target).locate().map(drop),
            Self::Churn => {
                let another = target.another()?;
                let another = another.ok_or_else(|| SystemException::inv_objref(0, spandrel::CompletionStatus::Yes))?;
                another.ping()?;
                another.leave()
            }
            Self::CallBack => target.call_back(Some(&stage.caller)),
            Self::Asynchronous => block_on(target.ping_async()),
            Self::Deferred => stage.late.ping(),
            Self::Dynamic => {
                let mut request = Request::new(spandrel::types::Interface::as_object(target), "echo");
                request.add_in_arg(TEXT)?.set_return_type(String::type_code());
                request.invoke().map_err(|error| match error {
                    RequestError::System(exception) => exception,
                    _ => SystemException::internal(0, spandrel::CompletionStatus::Yes),
                })?;
                request.return_value::<String>().map(drop)
            }
            Self::Collocated => stage.inside.echo(TEXT).map(drop),
        }
    }
}

named!(Kind, "kind of call");
