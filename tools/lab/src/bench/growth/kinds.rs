//! The kinds of calls.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use spandrel::SystemException;

use super::stage::{Stage, block_on};
use crate::LabError;
use crate::mechanism::generated::growth::growing::RefuseError;

/// One kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Without parameters.
    TwoWay,
    /// A text there and back.
    Echo,
    /// One that raises an exception of its interface.
    Exception,
    /// Not answered.
    OneWay,
    /// A question where the object is.
    Locate,
    /// An object that is made, called and let go.
    Churn,
    /// One during which the server calls back.
    CallBack,
    /// A future.
    Asynchronous,
    /// One that is answered after its upcall has returned.
    Deferred,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::TwoWay,
        Self::Echo,
        Self::Exception,
        Self::OneWay,
        Self::Locate,
        Self::Churn,
        Self::CallBack,
        Self::Asynchronous,
        Self::Deferred,
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
        }
    }

    /// How many requests [`make`](Self::make) sends.
    pub(super) fn calls(self) -> u64 {
        match self {
            Self::Churn => 3,
            Self::CallBack => 2,
            _ => 1,
        }
    }

    /// Makes one.
    ///
    /// # Errors
    /// What it ends in, if that is not what it should end in.
    pub(super) fn make(self, stage: &Stage) -> Result<(), SystemException> {
        let target = &stage.target;
        match self {
            Self::TwoWay => target.ping(),
            Self::Echo => target.echo("a text that is longer than what fits beside a pointer").map(drop),
            Self::Exception => match target.refuse() {
                Err(RefuseError::Refused(_)) => Ok(()),
                Err(RefuseError::System(exception)) => Err(exception),
                Ok(()) => Err(SystemException::internal(0, spandrel::CompletionStatus::Yes)),
            },
            Self::OneWay => target.note(7),
            Self::Locate => spandrel::Interface::as_object(target).locate().map(drop),
            Self::Churn => {
                let another = target.another()?;
                let another = another.ok_or_else(|| SystemException::inv_objref(0, spandrel::CompletionStatus::Yes))?;
                another.ping()?;
                another.leave()
            }
            Self::CallBack => target.call_back(Some(&stage.caller)),
            Self::Asynchronous => block_on(target.ping_async()),
            Self::Deferred => stage.late.ping(),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            LabError::Settings(format!("`{text}` is no kind of call; there are {names}"))
        })
    }
}
