//! A proxy that records the messages between a client and a server.

use std::{
    io::Write,
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use spandrel::types::{IiopProfile, Ior, ior_to_string};

use crate::{Server, support::read_message};

type Messages = Arc<Mutex<Vec<Vec<u8>>>>;

/// A proxy between clients and a server that forwards and records complete messages.
pub struct Wiretap {
    ior: Ior,
    port: u16,
    requests: Messages,
    replies: Messages,
}

impl Wiretap {
    /// Starts a proxy in front of this server.
    pub fn before(server: &Server) -> Self {
        let (requests, replies) = (Messages::default(), Messages::default());
        let to = server.port();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ior = at_port(server.object.ior(), port);
        let recorded = (Arc::clone(&requests), Arc::clone(&replies));
        thread::spawn(move || {
            for near in listener.incoming() {
                let (near, far) = (near.unwrap(), TcpStream::connect(("127.0.0.1", to)).unwrap());
                let back = (far.try_clone().unwrap(), near.try_clone().unwrap());
                forward(near, far, &recorded.0);
                forward(back.0, back.1, &recorded.1);
            }
        });
        Self { ior, port, requests, replies }
    }

    /// A reference to the server's object through this proxy.
    pub fn ior(&self) -> String {
        ior_to_string(&self.ior)
    }

    /// The proxy's port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns and removes the recorded messages of clients.
    pub fn take_requests(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    /// Returns and removes the recorded messages of the server.
    pub fn take_replies(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.replies.lock().unwrap())
    }
}

/// The IOR with another port in its IIOP profile.
pub fn at_port(ior: &Ior, port: u16) -> Ior {
    let mut profile = IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
    profile.port = port;
    Ior { type_id: ior.type_id.clone(), profiles: vec![profile.encode().unwrap()] }
}

fn forward(mut from: TcpStream, mut to: TcpStream, recorded: &Messages) {
    let recorded = Arc::clone(recorded);
    thread::spawn(move || {
        while let Ok(message) = read_message(&mut from) {
            recorded.lock().unwrap().push(message.clone());
            if to.write_all(&message).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
}
