//! Connections over which calls go both ways, and which end at any octet: each side is told what is so, compared with what was executed.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use spandrel::{CompletionStatus, Endpoint, IiopProfile, Ior, Orb, OrbBuilder, Poa, SystemException};
use spandrel_orb_tests::doors::{Door, DoorServant, DoorSkeleton};

/// How often each thing was done, and what the server's servant was told.
#[derive(Default)]
struct Book {
    rung: AtomicUsize,
    answered: AtomicUsize,
    told: Mutex<Vec<Result<(), CompletionStatus>>>,
}

/// Both sides have such a servant: the server's rings, the client's answers.
struct Doorman(Arc<Book>);

impl DoorServant for Doorman {
    fn ring(&self, other: Option<&Door>) -> Result<String, SystemException> {
        self.0.rung.fetch_add(1, Ordering::SeqCst);
        let told = other.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No))?.caller();
        let outcome = told.as_ref().map(drop).map_err(SystemException::completed);
        self.0.told.lock().unwrap().push(outcome);
        told
    }

    fn caller(&self) -> Result<String, SystemException> {
        self.0.answered.fetch_add(1, Ordering::SeqCst);
        Ok("x".repeat(100))
    }

    fn callers(&self) -> Result<String, SystemException> {
        self.caller()
    }

    fn enter(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Hands on what comes, and ends the first connection when so many octets have passed one way.
fn relay(to: u16, cut_after: usize, of_server: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for (number, near) in listener.incoming().enumerate() {
            let near = near.unwrap();
            let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else { return };
            for is_of_server in [false, true] {
                let limit = (number == 0 && is_of_server == of_server).then_some(cut_after);
                let ends = [&near, &far].map(|end| end.try_clone().unwrap());
                thread::spawn(move || hand_on(ends, is_of_server, limit));
            }
        }
    });
    port
}

fn hand_on([near, far]: [TcpStream; 2], is_of_server: bool, mut limit: Option<usize>) {
    let (mut from, mut to) = if is_of_server { (&far, &near) } else { (&near, &far) };
    let mut room = [0; 4096];
    while let Ok(octets @ 1..) = from.read(&mut room) {
        let pass = limit.map_or(octets, |left| left.min(octets));
        let is_cut = limit.is_some_and(|left| left < octets);
        limit = limit.map(|left| left - pass);
        if to.write_all(&room[..pass]).is_err() || is_cut {
            break;
        }
    }
    // They fail for those that have ended.
    for end in [&near, &far] {
        _ = end.shutdown(Shutdown::Both);
    }
}

fn side(builder: OrbBuilder, book: &Arc<Book>) -> (Orb, Door) {
    let orb = builder.bidirectional(true).request_timeout(Some(Duration::from_secs(20))).build().unwrap();
    let object = Poa::root(&orb).unwrap().activate(DoorSkeleton::new(Doorman(Arc::clone(book)))).unwrap();
    (orb, Door::unchecked_narrow(&object))
}

/// Whether what was told agrees with how often it was done.
#[track_caller]
fn compare(told: &Result<(), CompletionStatus>, times: usize, what: &str) {
    assert!(times <= 1, "{what} was done {times} times");
    match told {
        Ok(()) | Err(CompletionStatus::Yes) => assert_eq!(times, 1, "{what}: {told:?}"),
        Err(CompletionStatus::No) => assert_eq!(times, 0, "{what}: {told:?}"),
        Err(CompletionStatus::Maybe) => {}
    }
}

/// One call that calls back; whether it was told of a failure.
fn play(cut_after: usize, of_server: bool) -> bool {
    let book = Arc::<Book>::default();
    let (server, there) = side(Orb::builder(), &book);
    let (client, own) = side(Orb::builder().listen(Endpoint::nowhere()), &book);
    let ior = spandrel::Interface::as_object(&there).ior();
    let profile = IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
    let port = relay(profile.port, cut_after, of_server);
    let moved = IiopProfile { port, components: Vec::new(), ..profile }.encode().unwrap();
    let ior = Ior { type_id: ior.type_id.clone(), profiles: vec![moved] };
    let outer = Door::unchecked_narrow(&client.reference(ior)).ring(Some(&own));
    let outer = outer.map(drop).map_err(|exception| exception.completed());
    // Both have done by then whatever they do.
    client.shutdown(true).unwrap();
    server.shutdown(true).unwrap();
    let what = format!("cut after {cut_after} octets of the {}", if of_server { "server" } else { "client" });
    compare(&outer, book.rung.load(Ordering::SeqCst), &format!("ringing, {what}"));
    let told = book.told.lock().unwrap();
    match &told[..] {
        [] => assert_eq!(book.answered.load(Ordering::SeqCst), 0, "{what}"),
        [inner] => compare(inner, book.answered.load(Ordering::SeqCst), &format!("answering, {what}")),
        several => panic!("{what}: {several:?}"),
    }
    outer.is_err() || told.iter().any(Result::is_err)
}

#[test]
fn each_side_is_told_what_is_so_wherever_their_connection_ends() {
    for of_server in [false, true] {
        let failed = (0..700).step_by(9).filter(|cut_after| play(*cut_after, of_server)).count();
        assert!(failed > 10, "hardly anything failed: {failed}");
        assert!(!play(1 << 20, of_server), "nothing is cut");
    }
}
