//! Bidirectional connections cut at any octet: the outcomes that each side reports are compared with the
//! executed calls.

use std::{
    io::Write,
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use spandrel::{
    CompletionStatus, Endpoint, Orb, OrbBuilder, Poa, SystemException,
    types::{IiopProfile, Ior},
};
use spandrel_orb_tests::access::{Guard, GuardServant, GuardSkeleton};
use spandrel_orb_tests::support::read_some;

/// Counts of executed operations, and the outcomes that the server's servant observed.
#[derive(Default)]
struct ExecutionCounts {
    called_back: AtomicUsize,
    answered: AtomicUsize,
    outcomes: Mutex<Vec<Result<(), CompletionStatus>>>,
}

/// The servant of both sides: the server's calls back, the client's answers.
struct CountingGuard(Arc<ExecutionCounts>);

impl GuardServant for CountingGuard {
    fn call_back(&self, other: Option<&Guard>) -> Result<String, SystemException> {
        self.0.called_back.fetch_add(1, Ordering::SeqCst);
        let result = other.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No))?.caller();
        let outcome = result.as_ref().map(drop).map_err(SystemException::completed);
        self.0.outcomes.lock().unwrap().push(outcome);
        result
    }

    fn caller(&self) -> Result<String, SystemException> {
        self.0.answered.fetch_add(1, Ordering::SeqCst);
        Ok("x".repeat(100))
    }

    fn caller_chain(&self) -> Result<String, SystemException> {
        self.caller()
    }

    fn check_access(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// A proxy that cuts the first connection after `cut_after` octets in one direction.
fn cutting_proxy(to: u16, cut_after: usize, of_server: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for (number, near) in listener.incoming().enumerate() {
            let near = near.unwrap();
            let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else { return };
            for is_of_server in [false, true] {
                let limit = (number == 0 && is_of_server == of_server).then_some(cut_after);
                let ends = [&near, &far].map(|end| end.try_clone().unwrap());
                thread::spawn(move || forward(ends, is_of_server, limit));
            }
        }
    });
    port
}

fn forward([near, far]: [TcpStream; 2], is_of_server: bool, mut limit: Option<usize>) {
    let (from, mut to) = if is_of_server { (&far, &near) } else { (&near, &far) };
    let mut room = [0; 4096];
    while let Ok(octets @ 1..) = read_some(from, &mut room) {
        let pass = limit.map_or(octets, |left| left.min(octets));
        let is_cut = limit.is_some_and(|left| left < octets);
        limit = limit.map(|left| left - pass);
        if to.write_all(&room[..pass]).is_err() || is_cut {
            break;
        }
    }
    // Fails for sockets that are closed already.
    for end in [&near, &far] {
        _ = end.shutdown(Shutdown::Both);
    }
}

fn side(builder: OrbBuilder, counts: &Arc<ExecutionCounts>) -> (Orb, Guard) {
    let orb = builder.bidirectional(true).request_timeout(Some(Duration::from_secs(20))).build().unwrap();
    let object = Poa::root(&orb).unwrap().activate(GuardSkeleton::new(CountingGuard(Arc::clone(counts)))).unwrap();
    (orb, Guard::unchecked_narrow(&object))
}

/// Asserts that an outcome agrees with the number of executions.
#[track_caller]
fn compare(outcome: &Result<(), CompletionStatus>, times: usize, what: &str) {
    assert!(times <= 1, "{what}: executed {times} times");
    match outcome {
        Ok(()) | Err(CompletionStatus::Yes) => assert_eq!(times, 1, "{what}: {outcome:?}"),
        Err(CompletionStatus::No) => assert_eq!(times, 0, "{what}: {outcome:?}"),
        Err(CompletionStatus::Maybe) => {}
    }
}

/// Makes one call that calls back; whether either call failed.
fn call_through_cut(cut_after: usize, of_server: bool) -> bool {
    let counts = Arc::<ExecutionCounts>::default();
    let (server, there) = side(Orb::builder(), &counts);
    let (client, own) = side(Orb::builder().listen(Endpoint::nowhere()), &counts);
    let ior = spandrel::types::Interface::as_object(&there).ior();
    let profile = IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
    let port = cutting_proxy(profile.port, cut_after, of_server);
    let moved = IiopProfile { port, components: Vec::new(), ..profile }.encode().unwrap();
    let ior = Ior { type_id: ior.type_id.clone(), profiles: vec![moved] };
    let outer = Guard::unchecked_narrow(&client.reference(ior)).call_back(Some(&own));
    let outer = outer.map(drop).map_err(|exception| exception.completed());
    // After both shutdowns nothing is executed any more.
    client.shutdown().unwrap();
    server.shutdown().unwrap();
    let what = format!("cut after {cut_after} octets of the {}", if of_server { "server" } else { "client" });
    compare(&outer, counts.called_back.load(Ordering::SeqCst), &format!("call, {what}"));
    let outcomes = counts.outcomes.lock().unwrap();
    match &outcomes[..] {
        [] => assert_eq!(counts.answered.load(Ordering::SeqCst), 0, "{what}"),
        [inner] => compare(inner, counts.answered.load(Ordering::SeqCst), &format!("callback, {what}")),
        several => panic!("{what}: {several:?}"),
    }
    outer.is_err() || outcomes.iter().any(Result::is_err)
}

#[test]
fn outcomes_agree_with_executions_wherever_the_connection_is_cut() {
    for of_server in [false, true] {
        let failed = (0..700).step_by(9).filter(|cut_after| call_through_cut(*cut_after, of_server)).count();
        assert!(failed > 10, "only {failed} calls failed");
        assert!(!call_through_cut(1 << 20, of_server), "the connection is not cut");
    }
}
