//! Overhead of the typed wrappers: a ping-pong over the loopback interface through `inet::Stream`, and the
//! same through the standard library's plain calls of `send` and `recv`.
//!
//! The two run in turn, so that a noisy machine affects them alike; the medians of the rounds are printed.
//! Run with `cargo bench -p spandrel-ipc`; for quotable figures, pin it (`taskset -c 0`).

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use spandrel_ipc::inet::{Acceptor, Addr, Connector, Stream};
use spandrel_measure::stats::Summary;

const OCTETS: usize = 64;

/// Nanoseconds per round trip with both ends in this thread: the calls themselves, without thread switches.
fn nanoseconds(rounds: u32, mut round: impl FnMut() -> io::Result<()>) -> io::Result<f64> {
    let start = Instant::now();
    for _ in 0..rounds {
        round()?;
    }
    Ok(start.elapsed().as_nanos() as f64 / f64::from(rounds))
}

fn typed() -> io::Result<(Stream, Stream)> {
    let acceptor = Acceptor::open(&Addr::loopback(0))?;
    let client = Connector::new().no_delay(true).open(&acceptor.local_addr()?)?;
    let (server, _) = acceptor.accept()?;
    server.set_no_delay(true)?;
    Ok((client, server))
}

fn plain() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (server, _) = listener.accept()?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    Ok((client, server))
}

fn main() -> io::Result<()> {
    // `cargo test --benches` runs this too, as a smoke test.
    let (turns, rounds) = if std::env::args().any(|arg| arg == "--bench") { (41, 20_000) } else { (3, 10) };
    let (a, b) = typed()?;
    let (mut c, mut d) = plain()?;
    let (data, mut buffer) = ([7; OCTETS], [0; OCTETS]);
    let mut figures = Vec::new();
    for _ in 0..turns {
        let typed = nanoseconds(rounds, || {
            a.send_n(&data)?;
            b.recv_n(&mut buffer)?;
            b.send_n(&data)?;
            a.recv_n(&mut buffer).map_err(io::Error::from)
        })?;
        let plain = nanoseconds(rounds, || {
            c.write_all(&data)?;
            d.read_exact(&mut buffer)?;
            d.write_all(&data)?;
            c.read_exact(&mut buffer)
        })?;
        figures.push((typed, plain, typed / plain));
    }
    let median = |of: fn(&(f64, f64, f64)) -> f64| {
        Summary::from_values(figures.iter().map(of)).map_or(f64::NAN, |summary| summary.median)
    };
    println!("inet::Stream  {:8.0} ns per round trip of {OCTETS} octets", median(|f| f.0));
    println!("std::net      {:8.0} ns", median(|f| f.1));
    println!("ratio         {:8.3} (median of {turns} turns)", median(|f| f.2));
    Ok(())
}
