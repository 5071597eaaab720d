//! One log for many processes through a FIFO: `log-pipe read PATH` prints numbered lines, which any process writes into PATH,
//! for example `log-pipe write PATH` from its standard input, or `echo started > PATH`.

use std::error::Error;
use std::io::{self, BufRead as _, Write as _};
use std::time::Duration;

use spandrel::net::ipc::fifo::{self, Addr, Reader, Writer};

/// Lines of at most this length are written whole (POSIX: PIPE_BUF is at least 512).
const MAX_LINE: usize = 512;
/// The time in which a reader must be there.
const WAIT: Duration = Duration::from_secs(5);

type Done = Result<(), Box<dyn Error>>;

fn read(addr: &Addr) -> Done {
    match fifo::create(addr, 0o600) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    // Writers come and go.
    let reader = Reader::open_lasting(addr)?;
    eprintln!("reading {}", addr.as_path().display());
    let (mut buffer, mut line, mut number) = ([0; 4 << 10], Vec::new(), 0);
    loop {
        let count = reader.recv(&mut buffer)?;
        for octet in &buffer[..count] {
            line.push(*octet);
            // An endless line is cut.
            if *octet == b'\n' || line.len() == 2 * MAX_LINE {
                number += 1;
                let mut output = io::stdout().lock();
                writeln!(output, "{number}: {}", String::from_utf8_lossy(line.trim_ascii_end()))?;
                line.clear();
            }
        }
    }
}

fn write(addr: &Addr) -> Done {
    let writer = Writer::open_within(addr, WAIT)?;
    for line in io::stdin().lock().lines() {
        let mut line = line?.into_bytes();
        line.truncate(MAX_LINE - 1);
        line.push(b'\n');
        writer.send_n(&line)?;
    }
    Ok(())
}

fn main() -> Done {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["read", path] => read(&Addr::path(path)?),
        ["write", path] => write(&Addr::path(path)?),
        _ => Err("usage: log-pipe read PATH | log-pipe write PATH".into()),
    }
}
