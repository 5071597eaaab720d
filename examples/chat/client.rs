//! A chat client: shows the lines of the server, and sends those of standard input: `chat-client ADDRESS`.

use std::io;
use std::thread;

use spandrel::net::ipc::inet::Inet;
use spandrel::net::reactor::framing::{FrameHandler, Framed, Lines};
use spandrel::net::reactor::{CloseReason, Connector, Family, Peer, Reactor, Registry};

/// The lines of the server; it stops the reactor when they end.
struct Screen(Registry);

impl<F: Family> FrameHandler<F> for Screen {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let sender = peer.sender()?;
        thread::spawn(move || {
            for line in io::stdin().lines().map_while(Result::ok) {
                if let Err(error) = sender.put(format!("{line}\n").as_bytes()) {
                    eprintln!("{error}");
                }
            }
            sender.close();
        });
        Ok(())
    }

    fn handle_frame(&mut self, _peer: &mut Peer<'_, F>, line: &[u8]) -> io::Result<()> {
        println!("{}", String::from_utf8_lossy(line));
        Ok(())
    }

    fn close(&mut self, _peer: &mut Peer<'_, F>, reason: &CloseReason) {
        // Before the message: printing panics without a reader.
        self.0.stop();
        eprintln!("{reason}");
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let addr = std::env::args().nth(1).ok_or("usage: chat-client ADDRESS")?.parse()?;
    let reactor = Reactor::new()?;
    let (registry, failed) = (reactor.registry().clone(), reactor.registry().clone());
    Connector::new(Inet::default(), move || Framed::new(Lines::new(4096), Screen(registry.clone())))
        .on_give_up(move |gave_up| {
            failed.stop();
            eprintln!("{gave_up}");
        })
        .connect(reactor.registry(), &addr)?;
    Ok(reactor.run()?)
}
