//! Small messages that expand into large data.

use std::thread;

use anyhow::{Context, Result, ensure};
use spandrel_cdr::{ByteOrder, Encoder, GiopVersion, Wire};
use spandrel_giop::{HEADER_LEN, MessageHeader, MessageType};

use crate::AttackedServer;
use crate::wire::{finish, native_wire, request, send};

fn send_request(server: &AttackedServer, operation: &str, arguments: impl FnOnce(&mut Encoder<'_>)) -> Result<()> {
    let message = request(native_wire(), &server.profile.object_key, operation, arguments);
    let mut stream = server.connect()?;
    send(&mut stream, &message)?;
    finish(stream).map(drop)
}

/// An encapsulation with this content.
fn encapsulated(write_content: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_2));
    out.u8(ByteOrder::NATIVE.flag());
    write_content(&mut out);
    out.to_vec()
}

/// Type codes that are deeply nested, refer to themselves, or have counts beyond the message.
pub(super) fn type_codes(server: &AttackedServer, strength: u32) -> Result<()> {
    const SEQUENCE: u32 = 19;
    const ARRAY: u32 = 20;
    const STRUCT: u32 = 15;
    for depth in [10_usize, 60, 70, 1_000, 5_000] {
        // A sequence of sequences of …
        let mut inner = 3_u32.to_ne_bytes().to_vec();
        for _ in 0..depth {
            let level = encapsulated(|out| {
                out.octets(&[0; 3]);
                out.octets(&inner);
                out.u32(0);
            });
            inner = SEQUENCE.to_ne_bytes().to_vec();
            inner.extend((level.len() as u32).to_ne_bytes());
            inner.extend(&level);
        }
        send_request(server, "anything", |out| out.octets(&inner))?;
    }
    for _ in 0..strength * 20 {
        // An array of 2^32 - 1 empty structs.
        let empty = encapsulated(|out| {
            out.short_str("IDL:E:1.0").expect("the length fits");
            out.short_str("E").expect("the length fits");
            out.u32(0);
        });
        send_request(server, "anything", |out| {
            out.u32(ARRAY);
            let level = encapsulated(|out| {
                out.u32(STRUCT);
                out.octet_sequence(&empty).expect("the length fits");
                out.u32(u32::MAX);
            });
            out.octet_sequence(&level).expect("the length fits");
        })?;
        // Indirections to itself and before the message.
        for distance in [-4_i32, -8, -100_000, 4, i32::MIN] {
            send_request(server, "anything", |out| {
                out.u32(u32::MAX);
                out.i32(distance);
            })?;
        }
        // A struct with more members than octets.
        send_request(server, "anything", |out| {
            out.u32(STRUCT);
            let level = encapsulated(|out| {
                out.short_str("IDL:S:1.0").expect("the length fits");
                out.short_str("S").expect("the length fits");
                out.u32(0x7fff_ffff);
            });
            out.octet_sequence(&level).expect("the length fits");
        })?;
    }
    Ok(())
}

/// Values: nested anys, lists as long as the message, sequences with counts beyond the message.
pub(super) fn values(server: &AttackedServer, strength: u32) -> Result<()> {
    const ANY: u32 = 11;
    for depth in [30, 100, 10_000, 500_000] {
        send_request(server, "anything", |out| {
            (0..depth).for_each(|_| out.u32(ANY));
            out.u32(0);
        })?;
    }
    for _ in 0..strength * 20 {
        for count in [1_u32, 1 << 20, u32::MAX] {
            send_request(server, "echo_texts", |out| out.u32(count))?;
            send_request(server, "echo", |out| out.u32(count))?;
            send_request(server, "wide", |out| out.u32(count))?;
        }
    }
    // A list of values, each nested in the previous one.
    for length in [100, 1_000, 100_000] {
        send_request(server, "list", |out| {
            for number in 0..length {
                out.u32(0x7fff_ff00);
                out.i32(number);
            }
            out.u32(0);
        })?;
        // Indirections to the first value.
        send_request(server, "list", |out| {
            out.u32(0x7fff_ff00);
            out.i32(1);
            for _ in 0..length {
                out.u32(u32::MAX);
                out.i32(-12);
            }
        })?;
    }
    Ok(())
}

/// Clients that send at the same time as many values as a message may have, in 3 MiB each. Decoded, they take 85 MiB.
pub(super) fn graphs(server: &AttackedServer, strength: u32) -> Result<()> {
    const VALUES: u32 = 1 << 18;
    let message = request(native_wire(), &server.profile.object_key, "ponder", |out| {
        out.u32(VALUES);
        for number in 0..VALUES {
            out.u32(0x7fff_ff00);
            out.u32(number);
            out.u32(0);
        }
    });
    at_the_same_time(server, strength * 4, &message)
}

/// Clients whose requests of 12 MiB each are in slow servants at the same time.
pub(super) fn long_requests(server: &AttackedServer, strength: u32) -> Result<()> {
    let data = vec![7; 12 << 20];
    let message = request(native_wire(), &server.profile.object_key, "hold", |out| {
        out.octet_sequence(&data).expect("the length fits");
    });
    at_the_same_time(server, strength * 8, &message)
}

/// Sends the request by so many clients at once. All get replies, and at least one a result.
fn at_the_same_time(server: &AttackedServer, clients: u32, message: &[u8]) -> Result<()> {
    thread::scope(|scope| {
        let clients: Vec<_> = (0..clients)
            .map(|_| {
                scope.spawn(|| {
                    let mut stream = server.connect()?;
                    send(&mut stream, message)?;
                    finish(stream)
                })
            })
            .collect();
        let mut served = 0;
        for client in clients {
            let reply = client.join().expect("it does not panic")?;
            let (header, body) = reply.split_at_checked(HEADER_LEN).context("there is no reply")?;
            // The reply status comes behind the request id.
            let is_reply = MessageHeader::parse(header.first_chunk().context("it is whole")?)?.message_type;
            ensure!(is_reply == MessageType::Reply, "a {is_reply} came");
            served += u32::from(body.get(4..8) == Some(&[0; 4]));
        }
        ensure!(served > 0, "no client was served");
        Ok(())
    })
}

/// Service context lists: many contexts, long ones, or counts beyond the message.
pub(super) fn contexts(server: &AttackedServer, strength: u32) -> Result<()> {
    let wire = native_wire();
    let send_contexts = |count: u32, write: &dyn Fn(&mut Encoder<'_>)| -> Result<()> {
        // A request up to its service contexts.
        let mut out = Encoder::new(wire);
        out.octets(b"GIOP\x01\x02");
        out.u8(ByteOrder::NATIVE.flag());
        out.octets(&[0; 5]);
        out.u32(1);
        out.octets(&[3, 0, 0, 0]);
        out.i16(0);
        out.octet_sequence(&server.profile.object_key)?;
        out.short_str("echo")?;
        out.u32(count);
        write(&mut out);
        let mut octets = out.to_vec();
        let size = (octets.len() as u32 - 12).to_ne_bytes();
        octets[8..12].copy_from_slice(&size);
        let mut stream = server.connect()?;
        send(&mut stream, &octets)?;
        finish(stream).map(drop)
    };
    for _ in 0..strength {
        send_contexts(u32::MAX, &|_| {})?;
        send_contexts(65_535, &|out| {
            for id in 0..65_535 {
                out.u32(id);
                out.u32(0);
            }
        })?;
        send_contexts(1, &|out| {
            out.u32(1);
            out.u32(u32::MAX);
        })?;
        send_contexts(100, &|out| {
            for _ in 0..100 {
                out.u32(1);
                out.octet_sequence(&[9; 10_000]).expect("the length fits");
            }
        })?;
    }
    Ok(())
}
