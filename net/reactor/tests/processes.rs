//! A process for each connection. Its own harness, because the processes are this program again.

#[cfg(target_os = "linux")]
mod support;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    use spandrel_ipc::Family;
    use spandrel_ipc::inet::{Addr, Inet};
    use spandrel_reactor::strategy::{ProcessPerConnection, serve_handed};
    use spandrel_reactor::{Acceptor, Peer, Reactor, ServiceHandler};

    use crate::support::{LONG, Running, client, eventually, expect_end};

    /// Says in which process it is; a `!` kills that.
    struct WhoAmI;

    impl<F: Family> ServiceHandler<F> for WhoAmI {
        fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
            let mut buffer = [0; 64];
            match peer.recv(&mut buffer)? {
                0 => peer.close(),
                _ if buffer[0] == b'!' => std::process::abort(),
                _ => peer.put(&std::process::id().to_le_bytes())?,
            }
            Ok(())
        }
    }

    fn ask(addr: &Addr) -> u32 {
        let stream = client(addr);
        stream.send_n(b"who").unwrap();
        let mut id = [0; 4];
        stream.recv_n(&mut id).unwrap();
        u32::from_le_bytes(id)
    }

    pub(crate) fn main() {
        if serve_handed::<Inet, _>(WhoAmI).expect("a connection that was handed over is served") {
            return;
        }
        // First of all, while this process has one thread.
        forked();
        executed();
        refused_to_fork();
        println!("test result: ok. processes serve connections");
    }

    fn executed() {
        let running = Running::start(1);
        let server = Acceptor::new(Inet::default(), || WhoAmI)
            .concurrency(ProcessPerConnection::new(2).unwrap())
            .open(running.reactor.registry(), &Addr::loopback(0))
            .unwrap();
        let (one, two) = (ask(server.addr()), ask(server.addr()));
        assert!(one != two && one != std::process::id(), "each has a process of its own");
        eventually(|| server.connections() == 0);

        let (hurt, well) = (client(server.addr()), client(server.addr()));
        well.send_n(b"who").unwrap();
        well.recv_n(&mut [0; 4]).unwrap();
        eventually(|| server.connections() == 2);
        expect_end(&client(server.addr())); // beyond the limit
        hurt.send_n(b"!").unwrap();
        expect_end(&hurt);
        well.send_n(b"who").unwrap();
        well.recv_n(&mut [0; 4]).unwrap();
        eventually(|| server.connections() == 1);
        assert_eq!(server.drain(std::time::Duration::from_millis(100)), 1, "the last one is cut");
        expect_end(&well);
    }

    /// The reactor runs on this, the only thread; the client is a copy of this process made before.
    fn forked() {
        let listener = Inet::default().open(&Addr::loopback(0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let reactor = Reactor::new().unwrap();
        let server = Acceptor::new(Inet::default(), || WhoAmI)
            .concurrency(ProcessPerConnection::forking(4))
            .adopt(reactor.registry(), listener)
            .unwrap();
        let start = std::time::Instant::now();
        let stream = client(&addr);
        stream.send_n(b"who").unwrap();
        let mut id = [0; 4];
        let mut filled = 0;
        while filled < 4 {
            assert!(start.elapsed() < LONG);
            reactor.run_once(Some(std::time::Duration::from_millis(1))).unwrap();
            match stream.try_recv(&mut id[filled..]) {
                Ok(count) => filled += count,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        assert_ne!(u32::from_le_bytes(id), std::process::id());
        drop(stream);
        while server.connections() != 0 {
            assert!(start.elapsed() < LONG, "the copy is reaped");
            reactor.run_once(Some(std::time::Duration::from_millis(1))).unwrap();
        }
    }

    fn refused_to_fork() {
        let running = Running::start(1);
        let server = Acceptor::new(Inet::default(), || WhoAmI)
            .concurrency(ProcessPerConnection::forking(4))
            .open(running.reactor.registry(), &Addr::loopback(0))
            .unwrap();
        expect_end(&client(server.addr()));
    }
}
