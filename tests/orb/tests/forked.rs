//! Copies of a process that has ORBs: what is the original's stays the original's, and nothing hangs.

#[cfg(unix)]
fn main() {
    copies::all();
}

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
mod copies {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        sync::{
            Arc, Mutex,
            atomic::{AtomicBool, Ordering},
        },
        thread,
    };

    use fork::{Fork, fork};
    use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, kill_process, setrlimit, waitpid};
    use spandrel::{
        CompletionStatus, Concurrency, ObjectRef, Orb, Poa, Replied, Servant, ServerCall, SystemException,
        SystemExceptionKind,
        policies::{RebindPolicy, SetOverrideType},
    };
    use spandrel_giop::ids;
    use spandrel_orb_tests::{
        Server,
        probe::{Target, TargetSkeleton},
        support::{PATIENCE, block_on, in_background},
    };

    pub(super) fn all() {
        // A copy that is aborted as it should be leaves no image of its memory behind.
        setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).unwrap();
        let tests: [(&str, fn()); 7] = [
            ("a client in a copy is refused, and the original goes on", client_is_refused),
            ("a server in a copy is refused, and the original goes on", server_is_refused),
            ("copies serve, whatever the threads of the original wait for", copies_serve),
            ("what a copy drops the original keeps", nothing_is_let_go),
            ("a reply that a copy waits for comes to the original", replies_are_the_originals),
            ("a copy that comes back from an upcall is aborted", copy_in_an_upcall),
            ("copies made under load do not hang", copies_under_load),
        ];
        for (name, test) in tests {
            test();
            println!("ok {name}");
        }
    }

    fn ended(copy: i32) -> WaitStatus {
        let copy = Pid::from_raw(copy).unwrap();
        let waited = in_background(move || waitpid(Some(copy), WaitOptions::empty()).unwrap().unwrap().1);
        waited.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            kill_process(copy, Signal::KILL).unwrap();
            panic!("a copy of the process hangs");
        })
    }

    /// Runs this in a copy of the process, which must end well.
    #[track_caller]
    fn in_a_copy(run: impl FnOnce()) {
        match fork().unwrap() {
            Fork::Child => std::process::exit(i32::from(catch_unwind(AssertUnwindSafe(run)).is_err())),
            Fork::Parent(copy) => assert_eq!(ended(copy).exit_status(), Some(0), "the copy failed, as it says above"),
        }
    }

    #[track_caller]
    fn refused<T: std::fmt::Debug>(outcome: Result<T, SystemException>) {
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), error.minor()), (SystemExceptionKind::BadInvOrder, ids::BAD_INV_ORDER_COPIED));
        assert!(error.to_string().contains("an ORB of its own"), "{error}");
    }

    /// A client whose one connection is open, and may not be opened again.
    fn bound(server: &Server) -> Target {
        let target = server.client_with(Orb::builder().connections_per_peer(1));
        let kept = [RebindPolicy::NoReconnect.into()];
        let kept = target.as_object().set_policy_overrides(&kept, SetOverrideType::AddOverride).unwrap();
        let target = Target::unchecked_narrow(&kept);
        target.ping().unwrap();
        target
    }

    fn client_is_refused() {
        let server = Server::start();
        let target = bound(&server);
        in_a_copy(|| {
            refused(target.ping());
            refused(target.note(&[7]));
            refused(block_on(target.ping_async()));
            refused(target.as_object().locate());
            let orb = target.as_object().orb();
            refused(orb.string_to_object(&server.ior()));
            refused(orb.shutdown(true));
            orb.run();
            let own = server.client_with(Orb::builder());
            assert_eq!(own.add(40, 2).unwrap(), 42, "an ORB of its own works");
            own.as_object().orb().shutdown(true).unwrap();
        });
        assert_eq!(target.add(1, 2).unwrap(), 3);
    }

    /// A copy may have an ORB of its own, whose threads wait for each other wherever those of the original were.
    fn serve_and_call(server: &Server) {
        let own = Orb::builder().build().unwrap();
        let poa = Poa::root(&own).unwrap();
        let object = poa.activate(TargetSkeleton::new(Arc::clone(&server.probe))).unwrap();
        let client = Orb::builder().build().unwrap().reference(object.ior().clone());
        assert_eq!(Target::narrow(&client).unwrap().add(1, 1).unwrap(), 2, "a server of its own works");
    }

    fn server_is_refused() {
        let server = Server::start();
        let target = bound(&server);
        in_a_copy(|| {
            refused(server.poa.activate(TargetSkeleton::new(Arc::clone(&server.probe))));
            refused(server.orb.listen());
            refused(server.orb.shutdown(true));
            refused(server.orb.perform_work());
            refused(server.orb.run_in_main(Box::new(|| {})));
            server.orb.run();
            serve_and_call(&server);
        });
        assert_eq!(target.add(1, 2).unwrap(), 3);
        server.poa.activate(TargetSkeleton::new(Arc::clone(&server.probe))).unwrap();
    }

    /// Locks that keep their waiting threads in one table of the process made one copy in a hundred hang.
    fn copies_serve() {
        for _ in 0..300 {
            server_is_refused();
        }
    }

    fn nothing_is_let_go() {
        let server = Server::start();
        let target = bound(&server);
        block_on(target.ping_async()).unwrap();
        let asked = target.hold_async(1);
        server.probe.await_held(1);
        let mut held = Some((target, asked));
        let orb = Orb::builder().build().unwrap();
        let poa = Poa::root(&orb).unwrap();
        let served = poa.activate(TargetSkeleton::new(Arc::clone(&server.probe))).unwrap();
        let client = Target::narrow(&Orb::builder().build().unwrap().reference(served.ior().clone())).unwrap();
        client.ping().unwrap();
        let mut serving = Some((orb, poa, served));
        in_a_copy(|| {
            drop(held.take());
            drop(serving.take());
        });
        let (target, asked) = held.take().unwrap();
        server.probe.open(1);
        block_on(asked).unwrap();
        assert_eq!(target.add(1, 2).unwrap(), 3);
        client.ping().unwrap();
        let (orb, ..) = serving.take().unwrap();
        orb.shutdown(true).unwrap();
    }

    fn replies_are_the_originals() {
        let server = Server::start();
        let target = bound(&server);
        let mut asked = Some(target.hold_async(1));
        server.probe.await_held(1);
        in_a_copy(|| {
            let error = block_on(asked.take().unwrap()).unwrap_err();
            assert_eq!(error.completed(), CompletionStatus::Maybe);
            refused(Err::<(), _>(error));
        });
        server.probe.open(1);
        block_on(asked.take().unwrap()).unwrap();
        target.ping().unwrap();
    }

    /// Copies the process in its upcalls.
    struct Copier {
        copies: Mutex<Vec<i32>>,
    }

    impl Servant for Copier {
        fn repository_id(&self) -> &str {
            "IDL:Tests/Copier:1.0"
        }

        fn is_a(&self, repository_id: &str) -> bool {
            repository_id == self.repository_id()
        }

        fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
            let is_copy = match fork().unwrap() {
                Fork::Child => true,
                Fork::Parent(copy) => {
                    self.copies.lock().unwrap().push(copy);
                    false
                }
            };
            if is_copy && operation == "fail" {
                return Err(SystemException::unknown(0, CompletionStatus::No));
            }
            call.reply(|out| {
                out.bool(is_copy);
                Ok(())
            })
        }
    }

    fn copy_in_an_upcall() {
        for threads in [64, 0] {
            let orb = Orb::builder().concurrency(Concurrency::ThreadPerConnection { limit: threads }).build().unwrap();
            let copier = spandrel::net::sync::Arc::new(Copier { copies: Mutex::default() });
            let object = Poa::root(&orb).unwrap().activate_shared(copier.clone()).unwrap();
            let client = Orb::builder().build().unwrap().reference(object.ior().clone());
            for operation in ["reply", "fail", "reply"] {
                let answer: Result<bool, SystemException> = client.invoke(operation, |_| Ok(()), |input| input.bool());
                assert!(!answer.unwrap(), "the original answers");
            }
            let copies = std::mem::take(&mut *copier.copies.lock().unwrap());
            assert_eq!(copies.len(), 3);
            for copy in copies {
                assert_eq!(ended(copy).terminating_signal(), Some(Signal::ABORT.as_raw()));
            }
            orb.shutdown(true).unwrap();
        }
    }

    fn copies_under_load() {
        let server = Server::start();
        let target = server.client();
        let ends = Arc::new(AtomicBool::new(false));
        let callers: Vec<_> = (0..4)
            .map(|_| {
                let (target, ends) = (target.clone(), Arc::clone(&ends));
                thread::spawn(move || {
                    while !ends.load(Ordering::SeqCst) {
                        target.ping().unwrap();
                        block_on(target.ping_async()).unwrap();
                    }
                })
            })
            .collect();
        let object: ObjectRef = target.as_object().clone();
        for _ in 0..100 {
            in_a_copy(|| {
                refused(target.ping());
                refused(object.non_existent());
                refused(block_on(target.ping_async()));
                refused(object.orb().shutdown(false));
                serve_and_call(&server);
            });
        }
        ends.store(true, Ordering::SeqCst);
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        target.ping().unwrap();
    }
}
