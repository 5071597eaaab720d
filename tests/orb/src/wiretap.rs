//! What a client and a server say to each other, message by message.

use std::{
    io::Write,
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use spandrel::{IiopProfile, Ior, ior_to_string};

use crate::{Server, support::read_message};

type Messages = Arc<Mutex<Vec<Vec<u8>>>>;

/// Stands between clients and a server, and hands on whole messages.
pub struct Wiretap {
    ior: Ior,
    port: u16,
    requests: Messages,
    replies: Messages,
}

impl Wiretap {
    /// One before this server.
    pub fn before(server: &Server) -> Self {
        let (requests, replies) = (Messages::default(), Messages::default());
        let to = server.port();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ior = at_port(server.object.ior(), port);
        let noted = (Arc::clone(&requests), Arc::clone(&replies));
        thread::spawn(move || {
            for near in listener.incoming() {
                let (near, far) = (near.unwrap(), TcpStream::connect(("127.0.0.1", to)).unwrap());
                let back = (far.try_clone().unwrap(), near.try_clone().unwrap());
                hand_on(near, far, &noted.0);
                hand_on(back.0, back.1, &noted.1);
            }
        });
        Self { ior, port, requests, replies }
    }

    /// The server's object, by way of this.
    pub fn ior(&self) -> String {
        ior_to_string(&self.ior)
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What clients have said since it was asked last.
    pub fn take_requests(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    /// What the server has said since it was asked last.
    pub fn take_replies(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.replies.lock().unwrap())
    }
}

/// The reference with another port in its IIOP profile.
pub fn at_port(ior: &Ior, port: u16) -> Ior {
    let mut profile = IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
    profile.port = port;
    Ior { type_id: ior.type_id.clone(), profiles: vec![profile.encode().unwrap()] }
}

fn hand_on(mut from: TcpStream, mut to: TcpStream, noted: &Messages) {
    let noted = Arc::clone(noted);
    thread::spawn(move || {
        while let Ok(message) = read_message(&mut from) {
            noted.lock().unwrap().push(message.clone());
            if to.write_all(&message).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
}
