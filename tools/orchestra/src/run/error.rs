//! The reasons why samples cannot be taken.

use anyhow::anyhow;
use spandrel::SystemException;

use crate::idl::orchestra::harness::{RecordError, StartServerError, StopServerError, TakeSnapshotError};
use crate::idl::orchestra::work_team::{BeginError, TakeResultError};

/// The reason why a sample could not be taken.
#[derive(Clone, Debug)]
pub(super) struct SampleError {
    /// The host of the agent that could not be reached.
    pub(super) lost_agent: Option<String>,
    /// Whether the other servers of the group can still be measured.
    pub(super) is_of_server: bool,
    pub(super) reason: String,
}

impl SampleError {
    /// An error of all servers of the group, whose agents answer.
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { lost_agent: None, is_of_server: false, reason: reason.into() }
    }

    /// The agent on a host cannot be reached.
    pub(super) fn lost(host: &str, reason: &anyhow::Error) -> Self {
        Self { lost_agent: Some(host.to_owned()), ..Self::new(format!("{reason:#}")) }
    }

    /// The same as an error of one server alone, unless its agent is lost.
    pub(super) fn of_server(self) -> Self {
        Self { is_of_server: self.lost_agent.is_none(), ..self }
    }
}

/// A failed call of the agent on a host.
pub(super) trait AgentError {
    /// The system exception, if it is one: the agent did not answer, or not in time.
    fn system(&self) -> Option<&SystemException>;
}

impl AgentError for SystemException {
    fn system(&self) -> Option<&SystemException> {
        Some(self)
    }
}

macro_rules! agent_errors {
    ($($error:ident)*) => {
        $(impl AgentError for $error {
            fn system(&self) -> Option<&SystemException> {
                match self {
                    Self::System(exception) => Some(exception),
                    _ => None,
                }
            }
        })*
    };
}
agent_errors!(StartServerError StopServerError RecordError BeginError TakeResultError);
agent_errors!(TakeSnapshotError);

/// Adds the host and the call to the error of a call.
pub(super) fn called<T, E>(outcome: Result<T, E>, host: &str, operation: &str) -> Result<T, SampleError>
where
    E: AgentError + std::error::Error + Send + Sync + 'static,
{
    outcome.map_err(|error| {
        if error.system().is_some() {
            let text = format!("{operation} at the agent of {host} failed");
            return SampleError::lost(host, &anyhow!(error).context(text));
        }
        SampleError::new(format!("{:#}", anyhow!(error).context(format!("{operation} on {host} failed"))))
    })
}
