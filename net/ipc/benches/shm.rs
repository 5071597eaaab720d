//! Round-trip time through shared memory compared with TCP and a UNIX-domain socket.
//!
//! Two processes, pinned: both on one processor, then on two. The families run in turn, so that a noisy
//! machine affects them alike; the medians of the rounds are printed, and the median of the ratios to TCP.
//! Run with `cargo bench -p spandrel-ipc --bench shm`. With `-- reactor` both sides wait with `wait_ready`,
//! as a reactor does; with `-- 65536` messages of that many octets are exchanged.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    linux::main()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::env;
    use std::io;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use spandrel_ipc::{Accept, Family, Interest, Transfer, Transmit, inet, shm, unix, wait_ready};
    use spandrel_measure::stats::Summary;

    /// The way in which both sides wait.
    #[derive(Clone, Copy)]
    enum Style {
        Blocking,
        Reactor,
    }

    pub(super) fn main() -> io::Result<()> {
        let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
        if let [role, family, addr, cpu, octets, style] = &args[..]
            && role == "echo"
        {
            pin(cpu.parse().expect("a number"))?;
            let octets = octets.parse().expect("a number");
            return echo(family, addr, octets, if style == "reactor" { Style::Reactor } else { Style::Blocking });
        }
        // `cargo test --benches` runs this too, as a smoke test.
        let (turns, rounds) = if env::args().any(|arg| arg == "--bench") { (31, 3_000) } else { (3, 10) };
        let style = if args.iter().any(|arg| arg == "reactor") { Style::Reactor } else { Style::Blocking };
        let octets = args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(64);
        let allowed = sched_getaffinity(None)?;
        let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
        compare("one processor", cpus[0], cpus[0], turns, rounds, octets, style)?;
        if cpus.len() > 1 {
            compare("two processors", cpus[0], cpus[1], turns, rounds, octets, style)?;
        }
        Ok(())
    }

    fn pin(cpu: usize) -> io::Result<()> {
        let mut set = CpuSet::new();
        set.set(cpu);
        Ok(sched_setaffinity(None, &set)?)
    }

    /// One family's connection to a child that echoes.
    struct Peer {
        child: Child,
        round: Box<dyn FnMut() -> io::Result<()>>,
    }

    fn compare(
        name: &str,
        cpu: usize,
        other: usize,
        turns: usize,
        rounds: u32,
        octets: usize,
        style: Style,
    ) -> io::Result<()> {
        pin(cpu)?;
        let unix_addr = unix::Addr::abstract_name(format!("spandrel-bench-{}", std::process::id()))?;
        let shm_addr = shm::Addr::abstract_name(format!("spandrel-bench-shm-{}", std::process::id()))?;
        let mut peers = [
            start(&inet::Inet::default(), "tcp", &inet::Addr::loopback(0), other, octets, style)?,
            start(&unix::Unix::default(), "unix", &unix_addr, other, octets, style)?,
            start(&shm::Shm::default(), "shm", &shm_addr, other, octets, style)?,
        ];
        let mut figures = Vec::new();
        for _ in 0..turns {
            let mut turn = [0.0; 3];
            for (peer, figure) in peers.iter_mut().zip(&mut turn) {
                (peer.round)()?;
                let start = Instant::now();
                for _ in 0..rounds {
                    (peer.round)()?;
                }
                *figure = start.elapsed().as_nanos() as f64 / f64::from(rounds);
            }
            figures.push(turn);
        }
        for mut peer in peers {
            drop(peer.round); // the child sees the end
            peer.child.wait()?;
        }
        let median = |of: &dyn Fn(&[f64; 3]) -> f64| {
            Summary::from_values(figures.iter().map(of)).map_or(f64::NAN, |summary| summary.median)
        };
        let least = |i: usize| figures.iter().map(|f| f[i]).fold(f64::INFINITY, f64::min);
        println!("{name}: nanoseconds per round trip of {octets} octets, median and least of {turns} turns");
        for (i, family) in ["tcp", "unix", "shm"].into_iter().enumerate() {
            let (middle, least, ratio) = (median(&|f| f[i]), least(i), median(&|f| f[i] / f[0]));
            println!("  {family:5} {middle:9.0} {least:9.0}   ratio to tcp {ratio:6.3}");
        }
        Ok(())
    }

    fn start<F: Family>(
        family: &F,
        name: &str,
        addr: &F::Addr,
        cpu: usize,
        octets: usize,
        style: Style,
    ) -> io::Result<Peer> {
        let acceptor = family.open(addr)?;
        let child = Command::new(env::current_exe()?)
            .args(["echo", name, &acceptor.local_addr()?.to_string(), &cpu.to_string(), &octets.to_string()])
            .arg(if matches!(style, Style::Reactor) { "reactor" } else { "blocking" })
            .stdin(Stdio::null())
            .spawn()?;
        let (stream, _) = acceptor.accept()?;
        let (data, mut buffer) = (vec![7; octets], vec![0; octets]);
        let round = Box::new(move || {
            stream.send_n(&data)?;
            take(&stream, &mut buffer, style)
        });
        Ok(Peer { child, round })
    }

    fn take<S: Transfer>(stream: &S, mut buffer: &mut [u8], style: Style) -> io::Result<()> {
        if matches!(style, Style::Blocking) {
            return Ok(stream.recv_n(buffer)?);
        }
        while !buffer.is_empty() {
            wait_ready(stream, Interest::INPUT, None)?;
            match stream.try_recv(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => buffer = &mut buffer[n..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn echo(family: &str, addr: &str, octets: usize, style: Style) -> io::Result<()> {
        let timeout = Some(Duration::from_secs(10));
        match family {
            "tcp" => {
                let stream = inet::Inet::default().connect(&addr.parse().expect("an address"), timeout)?;
                stream.set_no_delay(true)?;
                serve(&stream, octets, style)
            }
            "unix" => serve(&unix::Unix::default().connect(&addr.parse()?, timeout)?, octets, style),
            _ => serve(&shm::Shm::default().connect(&addr.parse()?, timeout)?, octets, style),
        }
    }

    fn serve<S: Transfer>(stream: &S, octets: usize, style: Style) -> io::Result<()> {
        let mut buffer = vec![0; octets];
        loop {
            match take(stream, &mut buffer, style) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                result => result?,
            }
            stream.send_n(&buffer)?;
        }
    }
}
