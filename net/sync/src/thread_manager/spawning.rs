//! How a managed thread begins.

use super::context::ThreadContext;
use super::orders::Orders;
use super::registry::{Group, Member, Named, Phase, Place, Registry};
use super::{SpawnError, ThreadOptions};
use crate::{Arc, Condition, Mutex};

impl Registry {
    /// Spawns one thread, and waits until it has done what it was asked to do before it begins.
    pub(super) fn spawn(
        self: &Arc<Self>,
        group: &Group,
        options: &ThreadOptions,
        place: Place,
        body: impl FnOnce(&ThreadContext) + Send + 'static,
    ) -> Result<u64, SpawnError> {
        let name = place.name(&options.name);
        let builder = options.builder(&name)?;
        self.reap();
        let context = self.enrol(group, &name, place)?;
        let id = context.id;
        let asked = options.asks_the_scheduler().then(|| options.clone());
        let answer = Arc::new((Mutex::new(None), Condition::new()));
        let answered = Arc::clone(&answer);
        let must_answer = asked.is_some();
        let thread = builder.spawn(move || {
            let startup = || asked.map_or(Ok(()), |options| options.ask_the_scheduler());
            let report = |result| {
                *answered.0.lock() = Some(result);
                answered.1.notify_one();
            };
            context.run(startup, report, body);
        });
        self.note_handle(id, thread).map_err(|source| SpawnError::Create { name, source })?;
        if must_answer {
            let mut result = answer.0.lock();
            answer.1.wait_while(&mut result, |result| result.is_none());
            result.take().expect("waited for").inspect_err(|_| self.forget(id))?;
        }
        Ok(id)
    }

    /// Puts a thread that is about to be created into the table.
    fn enrol(self: &Arc<Self>, group: &Group, name: &str, place: Place) -> Result<ThreadContext, SpawnError> {
        let mut state = self.state.lock();
        if group.orders.is_cancelled() {
            return Err(SpawnError::Cancelled);
        }
        if state.members.len() >= self.limit {
            return Err(SpawnError::LimitReached { limit: self.limit });
        }
        let id = state.number();
        let orders = Arc::new(Orders::new(group.orders.get() | place.orders));
        let named = Named { name: name.into(), group: Arc::clone(&group.name), orders };
        let member =
            Member { group: group.id, named: named.clone(), phase: Phase::Starting, thread: None, handle: None };
        state.members.insert(id, member);
        let Named { name, group, orders } = named;
        Ok(ThreadContext { registry: Arc::clone(self), id, name, group, index: place.index, orders })
    }
}
