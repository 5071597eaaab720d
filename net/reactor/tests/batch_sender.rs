//! A sender of messages by one system call, in a process that runs out of descriptors.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use rustix::process::{Resource, Rlimit, setrlimit};
use spandrel_reactor::BatchSender;
use spandrel_test_support::alone;

/// Sends a message on each of two sockets, which has to arrive.
fn send_two(sender: &mut BatchSender, pairs: &mut [(UnixStream, UnixStream); 2]) {
    let messages = pairs.iter().map(|(here, _)| (here.as_fd(), b"text".as_slice()));
    sender.send(messages, |result| assert_eq!(result.unwrap(), 4));
    for (_, there) in pairs {
        there.read_exact(&mut [0; 4]).unwrap();
    }
}

/// An acceptor that has closed its spare descriptor, to accept a connection with it, would never get it back.
#[test]
fn a_sender_leaves_the_last_descriptor_to_acceptors() {
    alone(|| {
        let mut pairs = [(); 2].map(|()| UnixStream::pair().unwrap());
        let limit = Rlimit { current: Some(64), maximum: Some(64) };
        setrlimit(Resource::Nofile, limit).unwrap();
        let mut files: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        let mut sender = BatchSender::new().unwrap();
        files.pop().expect("there were descriptors");
        send_two(&mut sender, &mut pairs);
        assert!(!sender.sends_together());
        files.push(File::open("/dev/null").expect("the last descriptor is free"));
        let mut sender = BatchSender::new().unwrap();
        files.truncate(files.len() - 2);
        send_two(&mut sender, &mut pairs);
        files.push(File::open("/dev/null").expect("one is free"));
        let has_ring = File::open("/dev/null").is_err();
        assert_eq!(sender.sends_together(), has_ring);
    });
}
