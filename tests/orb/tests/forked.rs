//! Forked child processes with the ORBs of their parent: the parent keeps its connections and requests, and
//! neither process hangs.

#[cfg(unix)]
fn main() {
    child_processes::run_all();
}

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
mod child_processes {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        sync::{
            Arc, Mutex,
            atomic::{AtomicBool, AtomicUsize, Ordering},
        },
        thread,
    };

    use fork::{Fork, fork};
    use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, kill_process, setrlimit, waitpid};
    use spandrel::{
        CompletionStatus, ObjectRef, Orb, Poa, SystemException, SystemExceptionKind,
        options::Concurrency,
        policy::{RebindPolicy, SetOverrideType},
        server::{Replied, Servant, ServerCall},
    };
    use spandrel_giop::ids;
    use spandrel_orb_tests::{
        Server,
        probe::{Target, TargetSkeleton},
        support::{TEST_TIMEOUT, block_on, eventually, holds_within},
    };

    pub(super) fn run_all() {
        // An aborted child process must not write a core file.
        setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).unwrap();
        let tests: [(&str, fn()); 7] = [
            ("a client in a child process is refused, and the parent continues", client_is_refused),
            ("a server in a child process is refused, and the parent continues", server_is_refused),
            ("child processes serve with an ORB of their own", children_serve),
            ("dropping handles in a child process does not affect the parent", drops_do_not_affect_the_parent),
            ("a reply awaited in a child process goes to the parent", replies_go_to_the_parent),
            ("a child process that returns from an upcall is aborted", child_in_an_upcall),
            ("child processes forked under load do not hang", children_under_load),
        ];
        for (name, test) in tests {
            test();
            println!("ok {name}");
        }
    }

    /// Waits for the end of a child process.
    ///
    /// Starts no thread: the standard library has a lock for the time in which a thread starts or ends, and a child
    /// process that is forked then can start none.
    fn exit_status(child: i32) -> WaitStatus {
        let child = Pid::from_raw(child).unwrap();
        let mut status = None;
        let has_ended = holds_within(TEST_TIMEOUT, || {
            status = waitpid(Some(child), WaitOptions::NOHANG).unwrap();
            status.is_some()
        });
        if !has_ended {
            print_threads(child);
            kill_process(child, Signal::KILL).unwrap();
            panic!("a child process hangs");
        }
        status.unwrap().1
    }

    /// Prints where the threads of a process wait: their names, system calls with arguments, and functions of the
    /// kernel.
    fn print_threads(process: Pid) {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero())).into_iter().flatten();
        for task in tasks.flatten() {
            let [name, call, function] = ["comm", "syscall", "wchan"]
                .map(|file| std::fs::read_to_string(task.path().join(file)).unwrap_or_else(|error| error.to_string()));
            eprintln!("{}: {}: {} in {function}", task.path().display(), name.trim(), call.trim());
        }
    }

    /// Runs a closure in a child process, which must exit successfully.
    #[track_caller]
    fn in_child_process(run: impl FnOnce()) {
        match fork().unwrap() {
            Fork::Child => std::process::exit(i32::from(catch_unwind(AssertUnwindSafe(run)).is_err())),
            Fork::Parent(child) => {
                assert_eq!(exit_status(child).exit_status(), Some(0), "the child process failed, see above")
            }
        }
    }

    #[track_caller]
    fn assert_refused<T: std::fmt::Debug>(outcome: Result<T, SystemException>) {
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), error.minor()), (SystemExceptionKind::BadInvOrder, ids::BAD_INV_ORDER_COPIED));
        assert!(error.to_string().contains("create an ORB in this process"), "{error}");
    }

    /// A client whose single connection is open and must not be reopened.
    fn bound_target(server: &Server) -> Target {
        let target = server.client_with(Orb::builder().connections_per_peer(1));
        let no_reconnect = [RebindPolicy::NoReconnect.into()];
        let object = target.as_object().set_policy_overrides(&no_reconnect, SetOverrideType::AddOverride).unwrap();
        let target = Target::unchecked_narrow(&object);
        target.ping().unwrap();
        target
    }

    fn client_is_refused() {
        let server = Server::start();
        let target = bound_target(&server);
        in_child_process(|| {
            assert_refused(target.ping());
            assert_refused(target.note(&[7]));
            assert_refused(block_on(target.ping_async()));
            assert_refused(target.as_object().locate());
            let orb = target.as_object().orb();
            assert_refused(orb.string_to_object(&server.ior()));
            assert_refused(orb.shutdown());
            orb.run();
            let own = server.client_with(Orb::builder());
            assert_eq!(own.add(40, 2).unwrap(), 42, "a new ORB in the child process works");
            own.as_object().orb().shutdown().unwrap();
        });
        assert_eq!(target.add(1, 2).unwrap(), 3);
    }

    /// Serves and calls with a new ORB, whose threads may wait for each other while the parent's did at the
    /// time of the fork.
    fn serve_and_call(server: &Server) {
        let own = Orb::builder().build().unwrap();
        let poa = Poa::root(&own).unwrap();
        let object = poa.activate(TargetSkeleton::new(Arc::clone(&server.probe))).unwrap();
        let client = Orb::builder().build().unwrap().reference(object.ior().clone());
        assert_eq!(Target::narrow(&client).unwrap().add(1, 1).unwrap(), 2, "a new server in the child process works");
    }

    fn server_is_refused() {
        let server = Server::start();
        let target = bound_target(&server);
        in_child_process(|| {
            assert_refused(server.poa.activate(TargetSkeleton::new(Arc::clone(&server.probe))));
            assert_refused(server.orb.listen());
            assert_refused(server.orb.shutdown());
            assert_refused(server.orb.perform_work());
            assert_refused(server.orb.run_in_main(Box::new(|| {})));
            server.orb.run();
            serve_and_call(&server);
        });
        assert_eq!(target.add(1, 2).unwrap(), 3);
        server.poa.activate(TargetSkeleton::new(Arc::clone(&server.probe))).unwrap();
    }

    /// Regression: with locks that kept waiting threads in one table of the process, one child in a hundred
    /// hung.
    fn children_serve() {
        for _ in 0..300 {
            server_is_refused();
        }
    }

    fn drops_do_not_affect_the_parent() {
        let server = Server::start();
        let target = bound_target(&server);
        block_on(target.ping_async()).unwrap();
        let call = target.hold_async(1);
        server.probe.await_held(1);
        let mut held = Some((target, call));
        let orb = Orb::builder().build().unwrap();
        let poa = Poa::root(&orb).unwrap();
        let served = poa.activate(TargetSkeleton::new(Arc::clone(&server.probe))).unwrap();
        let client = Target::narrow(&Orb::builder().build().unwrap().reference(served.ior().clone())).unwrap();
        client.ping().unwrap();
        let mut serving = Some((orb, poa, served));
        in_child_process(|| {
            drop(held.take());
            drop(serving.take());
        });
        let (target, call) = held.take().unwrap();
        server.probe.open(1);
        block_on(call).unwrap();
        assert_eq!(target.add(1, 2).unwrap(), 3);
        client.ping().unwrap();
        let (orb, ..) = serving.take().unwrap();
        orb.shutdown().unwrap();
    }

    fn replies_go_to_the_parent() {
        let server = Server::start();
        let target = bound_target(&server);
        let mut call = Some(target.hold_async(1));
        server.probe.await_held(1);
        in_child_process(|| {
            let error = block_on(call.take().unwrap()).unwrap_err();
            assert_eq!(error.completed(), CompletionStatus::Maybe);
            assert_refused(Err::<(), _>(error));
        });
        server.probe.open(1);
        block_on(call.take().unwrap()).unwrap();
        target.ping().unwrap();
    }

    /// A servant that forks in its upcalls.
    struct ForkingServant {
        children: Mutex<Vec<i32>>,
    }

    impl Servant for ForkingServant {
        fn repository_id(&self) -> &str {
            "IDL:Tests/Copier:1.0"
        }

        fn is_a(&self, repository_id: &str) -> bool {
            repository_id == self.repository_id()
        }

        fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
            let is_child = match fork().unwrap() {
                Fork::Child => true,
                Fork::Parent(child) => {
                    self.children.lock().unwrap().push(child);
                    false
                }
            };
            if is_child && operation == "fail" {
                return Err(SystemException::unknown(0, CompletionStatus::No));
            }
            call.reply(|out| {
                out.bool(is_child);
                Ok(())
            })
        }
    }

    fn child_in_an_upcall() {
        for threads in [64, 0] {
            let orb = Orb::builder().concurrency(Concurrency::ThreadPerConnection { limit: threads }).build().unwrap();
            let servant = spandrel::net::sync::Arc::new(ForkingServant { children: Mutex::default() });
            let object = Poa::root(&orb).unwrap().activate_shared(servant.clone()).unwrap();
            let client = Orb::builder().build().unwrap().reference(object.ior().clone());
            for operation in ["reply", "fail", "reply"] {
                let answer: Result<bool, SystemException> = client.invoke(operation, |_| Ok(()), |input| input.bool());
                assert!(!answer.unwrap(), "the parent answers");
            }
            let children = std::mem::take(&mut *servant.children.lock().unwrap());
            assert_eq!(children.len(), 3);
            for child in children {
                assert_eq!(exit_status(child).terminating_signal(), Some(Signal::ABORT.as_raw()));
            }
            orb.shutdown().unwrap();
        }
    }

    fn children_under_load() {
        let server = Server::start();
        let target = server.client();
        let is_over = Arc::new(AtomicBool::new(false));
        let started = Arc::new(AtomicUsize::new(0));
        let callers: Vec<_> = (0..4)
            .map(|_| {
                let (target, is_over, started) = (target.clone(), Arc::clone(&is_over), Arc::clone(&started));
                thread::spawn(move || {
                    target.ping().unwrap();
                    started.fetch_add(1, Ordering::SeqCst);
                    while !is_over.load(Ordering::SeqCst) {
                        target.ping().unwrap();
                        block_on(target.ping_async()).unwrap();
                    }
                })
            })
            .collect();
        let object: ObjectRef = target.as_object().clone();
        // With the threads that serve them: see `exit_status`.
        eventually(|| started.load(Ordering::SeqCst) == callers.len());
        for _ in 0..100 {
            in_child_process(|| {
                assert_refused(target.ping());
                assert_refused(object.non_existent());
                assert_refused(block_on(target.ping_async()));
                assert_refused(object.orb().begin_shutdown());
                serve_and_call(&server);
            });
        }
        is_over.store(true, Ordering::SeqCst);
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        target.ping().unwrap();
    }
}
