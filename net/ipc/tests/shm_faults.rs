//! Peers that violate the shared memory protocol: in the handshake, and in later writes.
//!
//! They use plain system calls. A memory file can also be written by write(2), so no memory is mapped here.
#![cfg(target_os = "linux")]

use std::io::{ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use spandrel_ipc::shm::{Acceptor, AcceptorOptions, Addr, Connector, Stream};
use spandrel_ipc::{Interest, unix, wait_ready};
use spandrel_test_support::{TEST_TIMEOUT, alone};

/// The offsets of the words and octets in the memory, as in `shm::segment`; both rings hold 4,096 octets
/// here.
const FORWARD_TAIL: u64 = 0;
const FORWARD_HEAD: u64 = 128;
const BACKWARD_TAIL: u64 = 256;
const BACKWARD_HEAD: u64 = 384;
const RING: u32 = 4096;
const SIZE: u64 = 3 * 4096;
/// The flags below the position.
const FLAGS: u32 = 4;
const END: u32 = 8;
const QUIT: u32 = 4;

const HANDSHAKE: [u8; 16] = *b"SPNDLshm\x01\x0c\x0c\0\0\0\0\0";
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

fn memory(size: u64, seals: SealFlags) -> OwnedFd {
    let file = memfd_create("hostile", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&file, size).unwrap();
    fcntl_add_seals(&file, seals).unwrap();
    file
}

fn send_handshake(socket: &unix::Stream, octets: &[u8], files: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(files)));
    }
    sendmsg(socket, &[IoSlice::new(octets)], &mut control, SendFlags::NOSIGNAL).unwrap();
}

/// A connector with this handshake is refused, and the next one, with a correct handshake, is not.
#[track_caller]
fn refused(octets: &[u8], files: &[BorrowedFd<'_>]) {
    let acceptor = Acceptor::open_with(&Addr::unnamed(), &AcceptorOptions::default().max_queue(1 << 20)).unwrap();
    let addr = acceptor.local_addr().unwrap();
    let hostile = unix::Connector::connect(&addr).unwrap();
    send_handshake(&hostile, octets, files);
    let _client = Connector::connect(&addr).unwrap();
    let descriptors = descriptors();
    let (stream, _) = acceptor.accept().unwrap();
    assert_eq!(acceptor.refused(), 1);
    stream.send_n(b"served").unwrap();
    assert_eq!(hostile.recv_within(&mut [0], TEST_TIMEOUT).unwrap_or(0), 0, "the connection is closed");
    drop((stream, hostile));
    assert!(self::descriptors() <= descriptors, "descriptors of the handshake are closed");
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn wrong_handshakes_are_refused() {
    alone(|| {
        let good = memory(SIZE, SEALS);
        let changed = |at: usize, octet: u8| {
            let mut handshake = HANDSHAKE;
            handshake[at] = octet;
            handshake
        };
        refused(&changed(0, b'X'), &[good.as_fd()]); // another magic number
        refused(&changed(8, 2), &[good.as_fd()]); // another version
        refused(&changed(9, 11), &[good.as_fd()]); // too small a ring
        refused(&changed(10, 21), &[good.as_fd()]); // larger than the acceptor allows
        refused(&changed(10, 32), &[good.as_fd()]);
        refused(&changed(10, 255), &[good.as_fd()]);
        refused(&HANDSHAKE[..15], &[good.as_fd()]);
        refused(&[HANDSHAKE[0]], &[good.as_fd()]);
    });
}

#[test]
fn descriptors_that_are_too_many_or_too_few_are_refused() {
    alone(|| {
        let good = memory(SIZE, SEALS);
        refused(&HANDSHAKE, &[]);
        refused(&HANDSHAKE, &[good.as_fd(), good.as_fd()]);
        refused(&HANDSHAKE, &[good.as_fd(); 8]);
    });
}

#[test]
fn unsealed_memory_is_refused() {
    alone(|| {
        refused(&HANDSHAKE, &[memory(SIZE, SealFlags::empty()).as_fd()]);
        refused(&HANDSHAKE, &[memory(SIZE, SealFlags::SHRINK).as_fd()]);
        refused(&HANDSHAKE, &[memory(SIZE, SealFlags::SHRINK | SealFlags::GROW).as_fd()]); // more seals could be added later
        refused(&HANDSHAKE, &[memory(SIZE, SealFlags::GROW | SealFlags::SEAL).as_fd()]);
        refused(&HANDSHAKE, &[memory(SIZE - 1, SEALS).as_fd()]); // truncated
        refused(&HANDSHAKE, &[memory(0, SEALS).as_fd()]);
        refused(&HANDSHAKE, &[memory(SIZE + 4096, SEALS).as_fd()]); // not the size in the handshake
        refused(&HANDSHAKE, &[memory(SIZE, SEALS | SealFlags::WRITE).as_fd()]); // cannot be mapped for writing
    });
}

#[test]
fn a_descriptor_that_is_not_memory_is_refused() {
    alone(|| {
        let file = tempfile::tempfile().unwrap();
        file.set_len(SIZE).unwrap();
        refused(&HANDSHAKE, &[file.as_fd()]);
        let (reader, writer) = std::io::pipe().unwrap();
        refused(&HANDSHAKE, &[reader.as_fd()]);
        refused(&HANDSHAKE, &[writer.as_fd()]);
        let (one, _other) = unix::pair().unwrap();
        refused(&HANDSHAKE, &[one.as_fd()]);
        refused(&HANDSHAKE, &[std::fs::File::open("/").unwrap().as_fd()]);
    });
}

/// An accepted stream, and the resources of its hostile connector.
struct Attack {
    victim: Stream,
    socket: unix::Stream,
    file: OwnedFd,
}

impl Attack {
    fn new() -> Self {
        let acceptor = Acceptor::open(&Addr::unnamed()).unwrap();
        let socket = unix::Connector::connect(&acceptor.local_addr().unwrap()).unwrap();
        let file = memory(SIZE, SEALS);
        send_handshake(&socket, &HANDSHAKE, &[file.as_fd()]);
        let (victim, _) = acceptor.accept().unwrap();
        victim.set_recv_timeout(Some(TEST_TIMEOUT)).unwrap();
        victim.set_send_timeout(Some(TEST_TIMEOUT)).unwrap();
        Self { victim, socket, file }
    }

    fn write(&self, at: u64, word: u32) {
        assert_eq!(rustix::io::pwrite(&self.file, &word.to_ne_bytes(), at).unwrap(), 4);
    }
}

#[test]
fn an_impossible_tail_ends_the_connection() {
    for position in [RING + 1, RING * 2, 1 << 27, (1 << 28) - 1] {
        let attack = Attack::new();
        attack.write(FORWARD_TAIL, position << FLAGS);
        for _ in 0..2 {
            let error = attack.victim.recv(&mut [0; 64]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "position {position}");
        }
        assert_eq!(attack.victim.send(b"more").unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(wait_ready(&attack.victim, Interest::OUTPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::OUTPUT);
        assert_eq!(attack.socket.recv_within(&mut [0], TEST_TIMEOUT).unwrap(), 0, "the other side is notified");
    }
}

#[test]
fn an_impossible_head_ends_the_connection() {
    for position in [RING + 1, RING * 2, 1 << 27, (1 << 28) - 1] {
        let attack = Attack::new();
        attack.victim.send_n(&[7; RING as usize]).unwrap();
        attack.write(BACKWARD_HEAD, position << FLAGS);
        let error = attack.victim.send(b"more").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "position {position}");
        assert_eq!(attack.victim.recv(&mut [0; 64]).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}

#[test]
fn overwriting_ones_own_words_does_no_harm() {
    let attack = Attack::new();
    attack.victim.send_n(b"sent").unwrap();
    for garbage in [0, !QUIT, 0x5555_5550, 1 << 31] {
        attack.write(BACKWARD_TAIL, garbage);
        attack.write(FORWARD_HEAD, garbage);
        attack.victim.send_n(b"more").unwrap();
        assert_eq!(attack.victim.try_recv(&mut [0; 4]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    // It may announce that it takes nothing more, as any peer may.
    attack.write(BACKWARD_TAIL, QUIT);
    assert_eq!(attack.victim.send(b"more").unwrap_err().kind(), ErrorKind::BrokenPipe);
    attack.write(FORWARD_TAIL, 3 << FLAGS | END);
    assert_eq!(attack.victim.recv(&mut [0; 64]).unwrap(), 3);
    assert_eq!(attack.victim.recv(&mut [0; 64]).unwrap(), 0);
}

#[test]
fn positions_that_change_during_use_do_no_harm() {
    let attack = Attack::new();
    let end = Instant::now() + Duration::from_millis(300);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut word = 1_u32;
            while Instant::now() < end {
                word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                attack.write(FORWARD_TAIL, ((word >> 16) % (RING + 1)) << FLAGS | (word & 7));
                attack.write(BACKWARD_HEAD, ((word >> 18) % (RING + 1)) << FLAGS | (word & 7));
            }
        });
        while Instant::now() < end {
            let results = [attack.victim.try_recv(&mut [0; 700]), attack.victim.try_send(&[1; 900])];
            for result in results {
                match result {
                    Ok(n) => assert!(n <= 900),
                    Err(error) => assert!(
                        matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::InvalidData | ErrorKind::BrokenPipe),
                        "{error}"
                    ),
                }
            }
        }
    });
}

#[test]
fn spurious_wake_ups_do_no_harm() {
    let attack = Attack::new();
    let end = Instant::now() + Duration::from_millis(300);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while Instant::now() < end {
                let _ = attack.socket.try_send(&[0; 4096]);
            }
        });
        let time = Duration::from_millis(100);
        let start = Instant::now();
        assert_eq!(wait_ready(&attack.victim, Interest::INPUT, Some(time)).unwrap(), Interest::NONE);
        assert!((100..20_000).contains(&start.elapsed().as_millis()));
        assert!(attack.victim.recv_within(&mut [0], time).is_err());
    });
}

#[test]
fn dropping_an_acceptor_resets_pending_connections() {
    let acceptor = Acceptor::open(&Addr::unnamed()).unwrap();
    let client = Connector::connect(&acceptor.local_addr().unwrap()).unwrap();
    client.send_n(b"is anybody there").unwrap();
    drop(acceptor);
    client.set_recv_timeout(Some(TEST_TIMEOUT)).unwrap();
    assert_eq!(client.recv(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    while client.try_send(&[0; 65_536]).is_ok() {}
    assert_eq!(client.send(b"more").unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn another_user_is_refused_unless_any_user_is_set() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: only the superuser can be another user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let addr = Addr::path(&path).unwrap();
    let all = rustix::fs::Mode::from_raw_mode(0o777);
    rustix::fs::chmod(folder.path(), all).unwrap();
    let open = |options: AcceptorOptions| {
        let acceptor =
            Acceptor::open_with(&addr, &options.socket(unix::AcceptorOptions::default().mode(0o777))).unwrap();
        acceptor.set_nonblocking(true).unwrap();
        acceptor
    };
    // A thread of Linux can have another user ID than its process.
    let connect_as_other_user = || {
        let absent = rustix::process::Uid::from_raw(65_534);
        rustix::thread::set_thread_res_uid(absent, absent, absent).unwrap();
        Connector::new().any_user(true).open(&addr).unwrap()
    };
    std::thread::scope(|scope| {
        let acceptor = open(AcceptorOptions::default());
        let client = scope.spawn(connect_as_other_user).join().unwrap();
        assert_eq!(acceptor.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(acceptor.refused(), 1);
        client.set_recv_timeout(Some(TEST_TIMEOUT)).unwrap();
        assert!(matches!(client.recv(&mut [0]), Ok(0)), "it is closed");
        drop(acceptor);

        let acceptor = open(AcceptorOptions::default().any_user(true));
        let client = scope.spawn(connect_as_other_user).join().unwrap();
        let (server, _) = acceptor.accept().unwrap();
        assert_eq!(server.peer_credentials().unwrap().uid, 65_534);
        client.send_n(b"welcome").unwrap();
        server.recv_n_within(&mut [0; 7], TEST_TIMEOUT).unwrap();
    });
}
