//! The start of a managed thread.

use super::context::ThreadContext;
use super::registry::{Group, Member, Phase, Registry, SpawnPosition, ThreadIdentity};
use super::requests::Requests;
use super::{SpawnError, ThreadOptions};
use crate::{Arc, Condition, Mutex};

impl Registry {
    /// Spawns one thread, and waits until it has applied its scheduling options.
    pub(super) fn spawn(
        self: &Arc<Self>,
        group: &Group,
        options: &ThreadOptions,
        position: SpawnPosition,
        body: impl FnOnce(&ThreadContext) + Send + 'static,
    ) -> Result<u64, SpawnError> {
        let name = position.name(&options.name);
        let builder = options.builder(&name)?;
        self.reap();
        let context = self.register(group, &name, position)?;
        let id = context.id;
        let scheduling = options.has_scheduling().then(|| options.clone());
        let startup_result = Arc::new((Mutex::new(None), Condition::new()));
        let startup_reporter = Arc::clone(&startup_result);
        let has_scheduling = scheduling.is_some();
        let thread = builder.spawn(move || {
            let startup = || scheduling.map_or(Ok(()), |options| options.apply_scheduling());
            let report = |result| {
                *startup_reporter.0.lock() = Some(result);
                startup_reporter.1.notify_one();
            };
            context.run(startup, report, body);
        });
        self.set_handle(id, thread).map_err(|source| SpawnError::Create { name, source })?;
        if has_scheduling {
            let mut result = startup_result.0.lock();
            startup_result.1.wait_while(&mut result, |result| result.is_none());
            result.take().expect("waited for").inspect_err(|_| self.discard_unstarted(id))?;
        }
        Ok(id)
    }

    /// Adds a thread that is about to be created to the table.
    fn register(
        self: &Arc<Self>,
        group: &Group,
        name: &str,
        position: SpawnPosition,
    ) -> Result<ThreadContext, SpawnError> {
        let mut state = self.state.lock();
        if group.requests.is_cancelled() {
            return Err(SpawnError::Cancelled);
        }
        if state.members.len() >= self.limit {
            return Err(SpawnError::LimitReached { limit: self.limit });
        }
        let id = state.number();
        let requests = Arc::new(Requests::new(group.requests.get() | position.requests));
        let identity = ThreadIdentity { name: name.into(), group: Arc::clone(&group.name), requests };
        let member =
            Member { group: group.id, identity: identity.clone(), phase: Phase::Starting, thread: None, handle: None };
        state.members.insert(id, member);
        let ThreadIdentity { name, group, requests } = identity;
        Ok(ThreadContext { registry: Arc::clone(self), id, name, group, index: position.index, requests })
    }
}
