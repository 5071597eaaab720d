//! Cost of one dispatch compared with a plain loop over `epoll_wait`: two ends of a connection in one process
//! send each other an octet.
//!
//! Without arguments: a table of times, over every back end. `dispatch epoll 10000` runs only that many
//! rounds over one of them (`plain` is the loop without a reactor), for counting with `valgrind
//! --tool=callgrind` or `strace -c`; a third argument is the number of threads, a fourth that of connections.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::env;
    use std::io;
    use std::time::Instant;

    use rustix::buffer::spare_capacity;
    use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
    use spandrel_ipc::{Interest, Pollable, inet};
    use spandrel_reactor::{Backend, Context, EventHandler, Options, Reactor};
    use spandrel_sync::Arc;
    use spandrel_sync::atomic::{AtomicU64, Ordering};
    use spandrel_sync::thread;

    const ROUNDS: u64 = 100_000;

    pub(super) fn main() {
        let arguments: Vec<String> = env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
        if let Some(name) = arguments.first() {
            let rounds = arguments.get(1).map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));
            let threads = arguments.get(2).map_or(1, |threads| threads.parse().expect("a number"));
            let pairs = arguments.get(3).map_or(1, |pairs| pairs.parse().expect("a number"));
            run(name, rounds, threads, pairs);
            return;
        }
        // Under `cargo test` this is a smoke test.
        let rounds = if env::args().any(|argument| argument == "--bench") { ROUNDS } else { 100 };
        let names = Backend::available().into_iter().map(Backend::name);
        println!("{:10} {:>10}", "", "ns/round");
        for name in std::iter::once("plain").chain(names) {
            let start = Instant::now();
            run(name, rounds, 1, 1);
            println!("{name:10} {:>10.0}", start.elapsed().as_nanos() as f64 / rounds as f64);
        }
    }

    fn run(name: &str, rounds: u64, threads: usize, pairs: usize) {
        let streams: Vec<_> = (0..pairs).flat_map(|_| pair()).collect();
        // One octet for each pair.
        streams.iter().step_by(2).for_each(|stream| assert_eq!(stream.send(&[1]).expect("sent"), 1));
        if name == "plain" {
            plain(&streams, rounds).expect("it runs");
        } else {
            reactor(name.parse().expect("a back end"), streams, rounds, threads).expect("it runs");
        }
    }

    fn pair() -> [inet::Stream; 2] {
        let acceptor = inet::Acceptor::open(&inet::Addr::loopback(0)).expect("a port");
        let near = inet::Connector::connect(&acceptor.local_addr().expect("an address")).expect("a connection");
        let (far, _) = acceptor.accept().expect("a connection");
        [near, far]
    }

    fn plain(streams: &[inet::Stream], rounds: u64) -> io::Result<()> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        for (index, stream) in streams.iter().enumerate() {
            epoll::add(&epoll, stream.handle(), EventData::new_u64(index as u64), EventFlags::IN)?;
        }
        let mut events = Vec::with_capacity(64);
        let mut count = 0;
        while count < rounds {
            events.clear();
            epoll::wait(&epoll, spare_capacity(&mut events), None)?;
            for event in &events {
                let stream = &streams[usize::try_from(event.data.u64()).expect("an index")];
                let mut octet = [0];
                stream.recv(&mut octet)?;
                stream.send(&octet)?;
                count += 1;
            }
        }
        Ok(())
    }

    struct End {
        stream: inet::Stream,
        count: Arc<AtomicU64>,
        rounds: u64,
    }

    impl EventHandler for End {
        fn pollable(&self) -> Option<&dyn Pollable> {
            Some(&self.stream)
        }

        fn handle_input(&mut self, cx: &Context<'_>) -> io::Result<()> {
            let mut octet = [0];
            self.stream.recv(&mut octet)?;
            let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
            if count >= self.rounds {
                cx.stop();
                return Ok(());
            }
            self.stream.send(&octet).map(drop)
        }
    }

    fn reactor(backend: Backend, streams: Vec<inet::Stream>, rounds: u64, threads: usize) -> io::Result<()> {
        let reactor = Reactor::with(&Options::default().backend(backend))?;
        let count = Arc::new(AtomicU64::new(0));
        for stream in streams {
            reactor.registry().register(End { stream, count: Arc::clone(&count), rounds }, Interest::INPUT)?;
        }
        thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| reactor.run());
            }
            reactor.run()
        })
    }
}
