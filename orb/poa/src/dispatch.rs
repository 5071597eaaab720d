//! From a request to its upcall.
//!
//! A request that meets what it has to wait for (a manager that holds, an adapter or a servant that is being made or ended, another's
//! turn) is deferred, and begins anew from its key when that is over: whatever has changed meanwhile, it is treated as if
//! it came now (CORBA 3.3 Part 1, 15.3.9.4 asks for just that).

use std::{any::Any, time::Duration};

use spandrel_orb::{BidirectionalPolicy, Located, ObjectAdapter, Replied, Servant, ServerCall, SystemException};
use spandrel_sync::{Arc, Mutex, Weak, time::Instant};

use crate::{
    ThreadPolicy,
    adapter::{Adapter, Root},
    entering::Entrance,
    error,
    finding::Search,
    frames::Frame,
    in_use::InUse,
    invocation::{Invocation, Upcall},
    key,
    objects::Behind,
    signal::Ticket,
    turn::{Asked, Held, Promise},
};

/// How long the end of the ORB waits for servant activators to be told.
const PARTING: Duration = Duration::from_secs(2);

impl Root {
    /// Runs a request, or has it run later. `promise`: a turn that it has waited for.
    pub(crate) fn serve(
        &self,
        key: &[u8],
        call: ServerCall<'_>,
        mut promise: Option<Promise>,
    ) -> Result<Replied, SystemException> {
        // Given up after all that happens at the end of the frame.
        let mut _held: Option<Held> = None;
        let upcall = Upcall::new();
        let frame = upcall.frame();
        loop {
            match self.find_adapter(frame, key)? {
                None => {}
                Some(Search::Wait(ticket)) => return self.later(key, call, without_turn(ticket)),
                Some(Search::Found(_) | Search::Again) => continue,
            }
            let adapter = frame.adapter.borrow();
            let adapter = adapter.as_ref().expect("it was found");
            let id = &key[adapter.prefix.len()..];
            frame.set_object_id(id);
            match (adapter.policies.thread, &adapter.turn) {
                (ThreadPolicy::MainThreadModel, _) if !self.orb.get()?.is_main_thread() => {
                    return self.in_main(key, call);
                }
                (ThreadPolicy::SingleThreadModel, Some(turn)) => {
                    let promised = promise.take().filter(|promise| promise.is_of(turn));
                    _held = match promised.map_or_else(|| turn.ask(), |promise| Asked::Now(promise.redeem())) {
                        Asked::Now(turn) => Some(turn),
                        Asked::Later(promise) => return self.later(key, call, async { Some(promise.due().await) }),
                        Asked::Never => {
                            return Err(error::discarded("too many requests wait for the adapter's thread"));
                        }
                    };
                }
                _ => _held = None,
            }
            match adapter.enter(id, call.operation(), Some(&call))? {
                Entrance::Serve(in_use) => {
                    let in_use = frame.in_use.replace(Some(in_use));
                    debug_assert!(in_use.is_none(), "the frame was left");
                    return run(adapter, id, frame, call);
                }
                Entrance::Forward(forwarding) => return forwarding.answer(call),
                Entrance::Wait(ticket) => return self.later(key, call, without_turn(ticket)),
                Entrance::Again => {}
            }
        }
    }

    /// Has the adapter of this key in the frame, or says what the request is to do instead.
    #[inline]
    pub(crate) fn find_adapter(&self, frame: &Frame, key: &[u8]) -> Result<Option<Search>, SystemException> {
        if self.is_at(frame, key) {
            return Ok(None);
        }
        // Forgotten first: what is asked meanwhile is not inside of that adapter.
        frame.adapter.take();
        match self.search(key)? {
            Search::Found(adapter) => {
                *frame.adapter.borrow_mut() = Some(adapter);
                Ok(None)
            }
            other => Ok(Some(other)),
        }
    }

    /// Whether the frame has the adapter of this key in it still.
    #[inline]
    fn is_at(&self, frame: &Frame, key: &[u8]) -> bool {
        let adapter = frame.adapter.borrow();
        adapter.as_ref().is_some_and(|adapter| {
            adapter.has_key(key) && std::ptr::eq(adapter.root.as_ptr(), self) && !adapter.is_gone()
        })
    }

    /// Has a request begin anew when what it waits for has come.
    fn later(
        &self,
        key: &[u8],
        call: ServerCall<'_>,
        wait: impl Future<Output = Option<Promise>> + Send + 'static,
    ) -> Result<Replied, SystemException> {
        let (root, key) = (Weak::clone(&self.me), key.to_vec());
        call.spawn(move |deferred| async move {
            let promise = wait.await;
            let outcome = deferred.answer(|call| match root.upgrade() {
                Some(root) => root.serve(&key, call, promise),
                None => Err(error::no_adapter()),
            });
            deferred.end(outcome);
        })
    }

    /// Has the main thread run a request.
    fn in_main(&self, key: &[u8], call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let orb = self.orb.get()?;
        let (root, key) = (Weak::clone(&self.me), key.to_vec());
        let (deferred, replied) = call.defer()?;
        // Shared, so that it can be refused if the job is.
        let deferred = Arc::new(Mutex::new(Some(deferred)));
        let job = Arc::clone(&deferred);
        let refused = orb.run_in_main(Box::new(move || {
            let Some(deferred) = job.lock().take() else { return };
            let outcome = deferred.answer(|call| match root.upgrade() {
                Some(root) => root.serve(&key, call, None),
                None => Err(error::no_adapter()),
            });
            deferred.end(outcome);
        }));
        if let Err(exception) = refused {
            let left = deferred.lock().take();
            left.into_iter().for_each(|deferred| deferred.end(Err(exception.clone())));
        }
        Ok(replied)
    }
}

async fn without_turn(ticket: Ticket) -> Option<Promise> {
    ticket.await;
    None
}

/// Runs the upcall that the frame is ready for.
#[inline]
fn run(adapter: &Arc<Adapter>, id: &[u8], frame: &Frame, call: ServerCall<'_>) -> Result<Replied, SystemException> {
    let in_use = frame.in_use.borrow();
    let in_use = in_use.as_ref().expect("it was just put there");
    match in_use {
        InUse::Object(active) => match &active.behind {
            Behind::Servant(servant) => call.run(&**servant, &Invocation { adapter, id, in_use }),
            Behind::Forward(forwarding) => forwarding.answer(call),
        },
        InUse::Default(servant) => call.run(&**servant, &Invocation { adapter, id, in_use }),
        InUse::Located(located) => call.run(&*located.servant, &Invocation { adapter, id, in_use }),
    }
}

impl ObjectAdapter for Root {
    fn dispatch(&self, object_key: &[u8], _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        self.serve(object_key, call, None)
    }

    fn bidirectional_policy(&self, object_key: &[u8]) -> Option<BidirectionalPolicy> {
        self.known(object_key).ok()??.policy(BidirectionalPolicy::POLICY_TYPE)?.value().copied()
    }

    fn enter(
        &self,
        object_key: &[u8],
        _operation: &str,
        upcall: &mut dyn FnMut(&Arc<dyn Servant>),
    ) -> Result<bool, SystemException> {
        let entered = Upcall::new();
        let frame = entered.frame();
        if !self.is_at(frame, object_key) {
            frame.adapter.take();
            if key::home(self.incarnation, object_key).is_none() {
                // Another's key, or a plain one.
                return Ok(false);
            }
            let Search::Found(adapter) = self.search(object_key)? else { return Ok(false) };
            *frame.adapter.borrow_mut() = Some(adapter);
        }
        let adapter = frame.adapter.borrow();
        let adapter = adapter.as_ref().expect("it was found");
        let id = &object_key[adapter.prefix.len()..];
        let Some(in_use) = adapter.enter_active(id) else { return Ok(false) };
        frame.set_object_id(id);
        *frame.in_use.borrow_mut() = Some(in_use);
        let in_use = frame.in_use.borrow();
        let Some(servant) = in_use.as_ref().and_then(InUse::servant) else { return Ok(false) };
        upcall(servant);
        Ok(true)
    }

    fn locate(&self, object_key: &[u8]) -> Result<Located, SystemException> {
        // What is not there yet the request will have made.
        let Some(adapter) = self.known(object_key)? else { return Ok(Located::Here) };
        if !adapter.is_open() {
            adapter.check_admits()?;
        }
        Ok(match adapter.has(&object_key[adapter.prefix.len()..]) {
            Some(None) => Located::Here,
            Some(Some(forwarding)) => forwarding.located(),
            None => Located::Unknown,
        })
    }

    fn held(&self) -> usize {
        self.managers.held()
    }

    fn begin_close(&self) {
        self.managers.close();
    }

    fn close(&self) {
        let mut all = Vec::new();
        Self::all_below(self.top(), &mut all);
        let destroyed = self.destroy(self.top(), true, false);
        debug_assert!(destroyed.is_ok(), "it was not waited for");
        // For those that have somebody to tell, and all together.
        let start = Instant::now();
        for adapter in all.iter().filter(|adapter| adapter.has_activator()) {
            adapter.usage.await_quiet(PARTING.saturating_sub(Instant::now().saturating_duration_since(start)));
        }
        all.iter().for_each(Adapter::etherealize_left);
        self.orb.let_go();
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
